// Package etcd keeps the server in go.mod.
package etcd

import _ "go.etcd.io/etcd/server/v3/etcdmain"
