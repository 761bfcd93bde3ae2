# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0

.DEFAULT_GOAL := help
SHELL := /bin/bash
# Two busy thread pools on two cores starve each other; waiting threads must sleep.
export OMP_WAIT_POLICY := PASSIVE
PYTHON ?= $(shell command -v python3.11 || command -v python3)

.PHONY: help setup setup-light setup-qwen run test test-fast clean

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "make %-10s %s\n", $$1, $$2}'

setup:  ## prepare .venv, build the package, export the table-top policy, write setup.bash
	@$(PYTHON) tools/bootstrap.py --policy

setup-light:  ## the same without PyTorch and policies: the player, the world, the scripted source
	@$(PYTHON) tools/bootstrap.py

setup-qwen:  ## the same as setup, and llama.cpp for Qwen3-TTS: built once (5 to 15 minutes), then cached
	@$(PYTHON) tools/bootstrap.py --policy --qwen

run: setup  ## set up, then run the demonstration: the arm does what sentences say
	@source ./setup.bash && omni demo

# Two workers: the tests with a graph wait most of their time, the others compute beside them.
test: setup-qwen  ## set up, then run every test
	@source ./setup.bash && PYTHONSAFEPATH=1 python -m pytest -n 2

test-fast: setup  ## set up, then run the tests that need no ROS graph
	@source ./setup.bash && python -P -m pytest -m "not graph and not slow"

clean:  ## remove what setup made
	rm -rf .venv build install log setup.bash
