# `make help` lists the targets.
.DEFAULT_GOAL := help
SHELL := /usr/bin/env bash
REAL := scripts/real-control-plane
APISERVER_TESTS := crates/windlass-apiserver/tests

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z][a-z-]*:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-24s %s\n", $$1, $$2 }'

.PHONY: setup
setup: ## install what building and testing needs
	@scripts/setup

.PHONY: build
build: ## build target/release/windlass
	cargo build --release --locked -p windlass-cli

.PHONY: up
up: ## set up, build, and start a cluster with a Memcached in it
	@scripts/up

.PHONY: down
down: ## stop that cluster
	@target/release/windlass down

.PHONY: test
test: ## set up, check, build, and run all tests
	@scripts/test

.PHONY: sandboxed-pods
sandboxed-pods: ## run the tests of what pods need with every pod in a sandbox
	@scripts/sandboxed-pods

.PHONY: kill-rounds
kill-rounds: ## kill a writing API server 1,000 times, and check that it lost nothing
	KILL_ROUNDS=1000 cargo test --release --locked -p windlass-apiserver --test killed -- --nocapture

.PHONY: soak
soak: ## send a million generated requests and hostile bodies to the API server; print what it saw
	SOAK_REQUESTS=1000000 cargo test --release --locked -p windlass-apiserver --test soak -- --ignored --nocapture --test-threads=1

.PHONY: orphaning
orphaning: ## delete 1,000 Deployments with --cascade=orphan while every watch is late at random; print what was lost
	ORPHANING_ROUNDS=40 cargo test --release --locked -p windlass-cluster --test workloads -- --exact --nocapture \
		orphaning::orphaning_deletions_lose_nothing_when_watches_are_late_at_random

BAD_WEATHER_SECONDS ?= 3600

.PHONY: bad-weather
bad-weather: ## run an operator for an hour behind a proxy that fails in every way; print what it used (BAD_WEATHER_SECONDS)
	BAD_WEATHER_SECONDS=$(BAD_WEATHER_SECONDS) cargo test --release --locked -p windlass-cluster --test bad_weather

.PHONY: bench-apiserver
bench-apiserver: ## measure our API server beside kube-apiserver; print the table
	@$(REAL) build
	cargo build --release --locked -p windlass-bench-apiserver -p windlass-cli
	target/release/bench-apiserver

.PHONY: bench-watchers
bench-watchers: ## print how long after a write a thousand watchers have it
	cargo test --release --locked -p windlass-apiserver --test fanout -- --ignored --nocapture

.PHONY: bench-tests
bench-tests: ## print how many tests of a small operator run in a second
	cargo test --release --locked -p windlass-cluster --test testing -- --ignored --exact seed::tests_per_second --nocapture

.PHONY: bench-cluster
bench-cluster: build ## print what a cluster costs: idle, and while 500 pods come up
	KUBECTL=$$(scripts/kubectl) cargo test --release --locked -p windlass-tests --test bench_cluster -- --ignored --nocapture

.PHONY: bench-framework
bench-framework: ## print what the same operator takes on Windlass, controller-runtime and kube-runtime
	@scripts/bench-framework

.PHONY: bench-memcacheds
bench-memcacheds: ## print what the memcached operator needs: 2,000 of size 3 simulated, 100 of size 1 for real
	cargo test --release --locked -p memcached-operator --test load -- --ignored --nocapture --test-threads 1
	cargo build --release --locked -p windlass-cli -p memcached-operator
	KUBECTL=$$(scripts/kubectl) cargo test --release --locked -p windlass-tests --test bench_memcacheds -- --ignored --nocapture

.PHONY: etcd-scenarios
etcd-scenarios: ## disturb every scenario of the etcd operator at every write and every call; print how often
	cargo test --release --locked -p etcd-operator --test simulation -- --include-ignored --nocapture scenarios::

.PHONY: etcd-replay
etcd-replay: ## compare the simulated etcd with real ones over 100 random sequences of calls
	cargo test --locked -p etcd-operator --test simulation -- --include-ignored --nocapture replay::

.PHONY: explore-corpus
explore-corpus: ## explore small operators with one mistake each, and their twins without it; print how many are found
	cargo test --release --locked -p windlass-explore --test corpus --test blackbox -- --ignored --nocapture --test-threads 1

.PHONY: explore-real
explore-real: build ## build operators of others at exact versions, explore them, and replay what is found ten times
	scripts/explore-real

.PHONY: bench-explore
bench-explore: ## print how many plans are explored a minute: of Memcached in virtual time, of a process in Python
	cargo test --release --locked -p memcached-operator -p windlass-explore -- --ignored --nocapture --test-threads 1 bench_explore

SCAFFOLD ?= scaffold walkthroughs project interrupted_project real_cluster

.PHONY: scaffold
scaffold: ## build a scaffolded project after every step, play the walk-throughs, use it (SCAFFOLD=project: that part)
	@$(REAL) build
	cargo build --locked --workspace --bins
	KUBECTL=$$(scripts/kubectl) cargo test --locked -p windlass-tests $(SCAFFOLD:%=--test %) -- --ignored --nocapture --test-threads 1

.PHONY: check
check: ## format, licences, lints, rustdoc, the book: what CI checks besides the tests
	@scripts/check

.PHONY: advisories
advisories: ## look for known vulnerabilities in the dependencies; needs the network
	@scripts/advisories

.PHONY: book
book: ## build the book to target/book, and check its links
	@scripts/book

.PHONY: real-control-plane
real-control-plane: ## build and start the real Kubernetes control plane; print its kubeconfig
	@$(REAL) start

.PHONY: real-control-plane-stop
real-control-plane-stop: ## stop it; nothing is left running or stored
	@$(REAL) stop

.PHONY: kubectl
kubectl: ## print the path of a usable kubectl, fetching one when there is none
	@scripts/kubectl

.PHONY: record
record: ## send the recorded suite to a real control plane and store its answers
	@scripts/record

.PHONY: zoo
zoo: ## play the definitions of well-known operators on the real kube-apiserver and on ours
	@scripts/zoo

.PHONY: fidelity
fidelity: ## play random sequences on the real kube-apiserver and on ours, and compare
	@scripts/fidelity

.PHONY: real-workloads
real-workloads: ## play the workload controllers' scenarios on the real kube-apiserver
	@scripts/real-workloads

.PHONY: real-operators
real-operators: ## play the operators' scenarios on the real control plane, each as its own ServiceAccount
	@scripts/real-operators

.PHONY: real-manifests
real-manifests: ## show that a real cluster takes the manifests of operators
	@scripts/real-manifests

.PHONY: clients
clients: ## run clients and operator frameworks of Go, Python, JavaScript and Java, k9s and stern against a cluster (CLIENTS=fabric8: that one; CLIENTS=--real: the real control plane)
	cargo build --locked -p windlass-cli
	@scripts/all-clients $(CLIENTS)

.PHONY: envtest-suites
envtest-suites: ## run controller-runtime's own envtest suites on `windlass envtest` (SUITES=pkg/cache: that one; ASSETS=.real/bin: on the real servers)
	cargo build --locked -p windlass-cli
	@scripts/envtest-suites $(SUITES)

.PHONY: controller-gen
controller-gen: ## have controller-gen write the CRD that ours is compared with
	@scripts/controller-gen

.PHONY: facts
facts: ## write the table of facts about kinds from the real control plane
	@$(REAL) start --no-controllers >/dev/null
	@scripts/facts .real/kubeconfig crates/windlass-apiserver/facts/kinds.json
	@scripts/roles "$$(scripts/kubectl)" .real/kubeconfig crates/windlass-apiserver/facts/roles.json
	@scripts/start-up-objects "$$(scripts/kubectl)" .real/kubeconfig crates/windlass-apiserver/facts/objects.json
	@scripts/protobuf crates/windlass-apiserver/facts/protobuf.json

.PHONY: openapi
openapi: ## record what the real control plane answers at /openapi/v2
	@$(REAL) start --no-controllers >/dev/null
	@scripts/openapi "$$(scripts/kubectl)" .real/kubeconfig $(APISERVER_TESTS)/openapi/definition.json $(APISERVER_TESTS)/openapi/real.json

.PHONY: protobuf
protobuf: ## write the protobuf bodies of the tests with Kubernetes' own codecs
	@scripts/protobuf-bodies $(APISERVER_TESTS)/protobuf/bodies.jsonl
	@scripts/protobuf-case $(APISERVER_TESTS)/recorded/cases/protobuf.yaml \
		$(APISERVER_TESTS)/recorded/cases/defaults.yaml $(APISERVER_TESTS)/protobuf/requests.yaml

.PHONY: features
features: ## check crate windlass with every combination of its features that matters
	@scripts/features

.PHONY: charts
charts: ## render our charts, public ones and those of CHARTS=DIR with Helm beside our crate; print how many are equal
	HELM=$$(scripts/helm) CHARTS="$$(scripts/charts):$(CHARTS)" cargo test --locked -p windlass-charts --test differential -- --ignored --nocapture --exact charts_rendered_beside_helm_are_equal

.PHONY: charts-record
charts-record: ## write what Helm prints for our charts
	HELM=$$(scripts/helm) cargo test --locked -p windlass-charts --test differential -- --ignored --exact record
