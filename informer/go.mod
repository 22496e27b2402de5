module github.com/watchkeeper/watchkeeper/informer

go 1.26.0
