// Package types keeps what the programs of scripts/protobuf, zeros and others import in go.mod.
package types

import (
	_ "go.yaml.in/yaml/v3"
	_ "k8s.io/api/core/v1"
	_ "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	_ "k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	_ "k8s.io/client-go/kubernetes/scheme"
	_ "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)
