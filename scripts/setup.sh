#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: scripts/setup.sh GROUP...
# Installs what the groups of scripts/packages.txt need and this machine lacks: Debian packages through apt-get, PyPI
# packages into .venv. Does nothing when all is there. Without root it prints the line to run and ends with status 1.
set -euo pipefail
cd "$(dirname "$0")/.."

names() { # names FROM GROUP...: the packages of these groups from apt or pypi
    local from=$1 group
    shift
    for group; do
        awk -v group="$group" -v from="$from" '$1 == group && $2 == from { for (i = 3; i <= NF; i++) print $i }' scripts/packages.txt
    done | sort -u
}

for group; do
    grep -q "^$group " scripts/packages.txt || { echo "setup: no group '$group' in scripts/packages.txt" >&2; exit 2; }
done

groups=("$@")
mapfile -t pypi < <(names pypi "${groups[@]}")
[ ${#pypi[@]} -eq 0 ] || groups+=(venv)
mapfile -t apt < <(names apt "${groups[@]}")

if ! command -v dpkg-query >/dev/null; then
    echo "setup: this is not a Debian system; these Debian 12 packages, or their like, are needed: ${apt[*]}" >&2
else
    missing=()
    for package in "${apt[@]}"; do
        state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
        [ "$state" = installed ] || missing+=("$package")
    done
    if [ ${#missing[@]} -gt 0 ]; then
        if [ "$(id -u)" -ne 0 ]; then
            echo "setup: packages are missing. Run this line, then make again:" >&2
            echo "sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}" >&2
            exit 1
        fi
        echo "setup: installing ${missing[*]}"
        export DEBIAN_FRONTEND=noninteractive
        apt-get -q -o DPkg::Lock::Timeout=300 update
        apt-get -q -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${missing[@]}"
    fi
fi

if [ ${#pypi[@]} -gt 0 ]; then
    # Debian's, whose headers are there to build modules with.
    python=/usr/bin/python3
    [ -x $python ] || python=python3
    [ -x .venv/bin/pip ] || $python -m venv .venv
    missing=()
    for package in "${pypi[@]}"; do
        version=$(.venv/bin/pip show "${package%%==*}" 2>/dev/null | awk '$1 == "Version:" { print $2 }' || true)
        [ -n "$version" ] && { [[ $package != *==* ]] || [ "$version" = "${package#*==}" ]; } || missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] || .venv/bin/pip install -q --disable-pip-version-check --retries 1 --timeout 30 "${missing[@]}"
fi
