#!/usr/bin/env bash
# The demo: renders this folder's policy, starts an application, the service
# and NGINX on free loopback ports, and shows what clients get. It stays up
# until Ctrl-C; DEMO_ONCE=1 ends it after the show. Everything it writes is in
# a temporary folder.
# usage: demo.sh SLUICE_BINARY
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
sluice=$(realpath "${1:-bin/sluice}")
work=$(mktemp -d)
PATH="$PATH:/usr/sbin"
pids=()

bold='' dim='' green='' red='' off=''
if [ -t 1 ]; then
  bold=$'\e[1m' dim=$'\e[2m' green=$'\e[32m' red=$'\e[31m' off=$'\e[0m'
fi

stop() {
  trap - EXIT INT TERM
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$work" "/dev/shm/${work##*/}"
}
trap stop EXIT
trap 'exit 0' INT TERM

install_nginx() {
  command -v nginx >/dev/null && return
  echo "nginx is missing: installing Debian's package"
  local sudo=""
  [ "$(id -u)" = 0 ] || sudo=sudo
  $sudo apt-get update -q
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -yq --no-install-recommends nginx curl
}

free_port() { # FROM: prints the first loopback port from there that nobody listens on
  local port
  for port in $(seq "$1" $(($1 + 200))); do
    if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
      echo "$port"
      return
    fi
  done
  echo "no free port found" >&2
  return 1
}

wait_for() { # PORT WHAT
  for _ in $(seq 100); do
    (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return
    sleep 0.05
  done
  echo "$2 did not start; its log:" >&2
  cat "$work/$2.log" >&2
  exit 1
}

start_service() {
  # Rates live in memory; the file is for what a policy sells: quotas.
  "$sluice" serve "$here/policy.yaml" --listen "127.0.0.1:$authz" --store "embedded:$work/sluice.db" \
    --admin "127.0.0.1:$admin" --token-file "$work/sluice.token" --datagrams "127.0.0.1:$admin" >"$work/service.log" 2>&1 &
  service=$!
  pids+=("$service")
  wait_for "$authz" service
}

title() { printf '\n%s%s%s\n' "$bold" "$1" "$off"; }

show() { # curl arguments; prints the request as one would type it, then what matters of the answer
  printf '%s$ curl -i' "$dim"
  printf " %s" "${@@Q}" | sed "s/'\(\(-[a-zA-Z]\)\|\([A-Za-z0-9:/._-]*\)\)'/\1/g"
  printf '%s\n' "$off"
  curl -s -i "$@" | tr -d '\r' | awk -v green="$green" -v red="$red" -v off="$off" '
    NR == 1 { print "  " ($2 < 400 ? green : red) $0 off; next }
    body || /^$/ { if (!body) { body = 1; next } print "  " $0; next }
    tolower($0) ~ /^(ratelimit|x-ratelimit|retry-after|x-sluice|content-type|www-authenticate)/ { print "  " $0 }'
}

statuses() { # N curl arguments: sends N requests and counts the statuses
  local n=$1
  shift
  local config="$work/curl.txt"
  : >"$config"
  for _ in $(seq "$n"); do printf 'url = "%s"\noutput = /dev/null\n' "$URL" >>"$config"; done
  curl -s -w '%{http_code}\n' "$@" -K "$config" | sort | uniq -c | awk '{ print "  " $1 " x " $2 }'
}

install_nginx
# Below the ports that outgoing connections are given.
app=$(free_port $((20000 + RANDOM % 10000)))
authz=$(free_port $((app + 1)))
web=$(free_port $((authz + 1)))
admin=$(free_port $((web + 1)))
base="http://127.0.0.1:$web"

(cd "$here/../.." && go build -o "$work/app" ./examples/app)
"$work/app" --listen "127.0.0.1:$app" >"$work/app.log" 2>&1 &
pids+=($!)
wait_for "$app" app

start_service

title "The policy becomes NGINX configuration"
echo "$dim\$ sluice render examples/saas/policy.yaml --full --out DIR$off"
"$sluice" render "$here/policy.yaml" --full --out "$work/nginx" \
  --cache-dir "/dev/shm/${work##*/}" --authz "127.0.0.1:$authz" --upstream "127.0.0.1:$app" --listen "127.0.0.1:$web" | sed 's/^/  /'
(cd "$work/nginx" && find sluice nginx.conf -type f | sort | sed 's/^/  /')
nginx -p "$work/nginx/" -c nginx.conf -e "$work/nginx.log" -g 'daemon off;' >>"$work/nginx.log" 2>&1 &
pids+=($!)
wait_for "$web" nginx

key='X-API-Key: sk_demo_acme_web'
batch='Authorization: Bearer sk_demo_acme_batch'

title "Allowed: a tenant's key, its plan, and what is left"
show -H "$key" "$base/v1/projects"
title "Weighted: a search costs 5 units"
show -H "$key" "$base/v1/search?q=sluice"
title "Refused by the tenant's bucket: batch has the free plan, burst 20, and searches for 5 each"
URL="$base/v1/search?q=all" statuses 4 -H "$batch"
show -H "$batch" "$base/v1/search?q=more"
title "Refused by the edge: signup takes 5 at once from one address; the service is not asked"
URL="$base/signup" statuses 5
show "$base/signup"
title "A blocked network, told by X-Forwarded-For from a trusted proxy"
show -H 'X-Forwarded-For: 198.51.100.7' "$base/v1/projects"
title "A key that nobody owns"
show -H 'X-API-Key: sk_wrong' "$base/v1/projects"

title "The service is stopped: /v1/projects fails open, /v1/pay fails closed"
kill "$service" && wait "$service" 2>/dev/null || true
show -H "$key" "$base/v1/projects"
show -H "$key" "$base/v1/pay"
title "... and started again"
start_service
# NGINX tries a peer again after fail_timeout.
for _ in $(seq 60); do
  curl -s -o /dev/null -D - -H "$key" "$base/v1/projects" | grep -qi '^ratelimit:' && break
  sleep 0.1
done
show -H "$key" "$base/v1/projects"

if [ "${DEMO_ONCE:-}" = 1 ]; then
  exit 0
fi
title "Now you (Ctrl-C ends it)"
cat <<TEXT
  curl -i $base/v1/projects                                # anonymous: 10 at once, then 1 each second
  curl -i -H '$key' $base/v1/search?q=x
  curl -i -H '$batch' $base/v1/search?q=x
  curl -i -H 'Accept: text/html' -H 'Accept-Language: de' -H '$batch' $base/v1/search?q=x
  curl -i -X POST -H '$key' $base/v1/projects/7/export     # costs 20
  less $work/nginx/sluice/http.conf                        # what was rendered
  curl -s http://127.0.0.1:$admin/metrics | grep ^sluice_  # what the service counts
  tail -f $work/service.log                                # what the service says
TEXT
wait
