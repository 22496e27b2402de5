module github.com/watchkeeper/watchkeeper/informer/zstd

go 1.26.0

require github.com/klauspost/compress v1.18.0
