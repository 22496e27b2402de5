module github.com/watchkeeper/watchkeeper/localcluster/testcluster

go 1.26.0
