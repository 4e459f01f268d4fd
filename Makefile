# `make help` lists the targets.
.DEFAULT_GOAL := help
SHELL := /usr/bin/env bash
REAL := scripts/real-control-plane

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z][a-z-]*:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-20s %s\n", $$1, $$2 }'

.PHONY: real-control-plane
real-control-plane: ## build and start the real Kubernetes control plane; prints its kubeconfig
	@$(REAL) start

.PHONY: real-control-plane-stop
real-control-plane-stop: ## stop it; nothing is left running or stored
	@$(REAL) stop

.PHONY: kubectl
kubectl: ## print the path of a usable kubectl, fetching one when there is none
	@scripts/kubectl

.PHONY: facts
facts: ## write the table of facts about kinds anew, from the real control plane
	@$(REAL) start >/dev/null
	@scripts/facts .real/kubeconfig crates/windlass-apiserver/facts/kinds.json

.PHONY: record
record: ## send the recorded suite to a real control plane and store its answers
	@scripts/record
