package cmd

// starterPolicy is the policy that init writes. What is commented out in it is
// a policy too: a test takes the marks away.
const starterPolicy = `# A policy of Sluice: who may send how much. Check it with sluice validate.
version: 1

# Who the client is: whoever opens the connection. Behind a load balancer or a
# CDN that is always the same address; then say which proxies may name the client.
# client_ip:
#   trusted_proxies: [10.0.0.0/8]
#   header: X-Forwarded-For

# What NGINX decides alone, on each node, before anything else.
edge:
  access:                              # the first rule that fits decides
    - {name: blocked, deny: {cidrs: [192.0.2.0/24]}}  # an example: no real client is here
  limits:
    per_ip: {per: ip, rate: 20/s, burst: 40}          # 20 requests a second, 40 at once
    login: {per: ip, rate: 10/m, burst: 5, routes: [login]}

# What the service decides, for all nodes together: sluice serve. Take the marks
# away when you have customers with API keys; sluice key new makes one.
# identity:
#   sources: [{api_key: {header: X-API-Key}}]
#   missing: {plan: anonymous}         # no key: a client is its address
# plans:
#   anonymous:
#     limits: {speed: {per: ip, rate: 1/s, burst: 10}}
#   paid:
#     limits: {speed: {per: key, rate: 50/s, burst: 100}}
# tenants:
#   - id: example
#     plan: paid
#     keys: [{id: example-1, sha256: aff85b06e3327cdb725a9e56ca5ddc5a72a358d21f38b621e3f4dbf2ccef43bc}]

# Which requests are which. NGINX chooses: an exact path, else the longest prefix.
routes:
  - {name: health, match: {exact: /healthz}, exempt: true}  # nothing counts a health check
  - {name: login, match: {exact: /login}}
  - {name: site, match: {prefix: /}}
`

// starterTests are the tests of starterPolicy, which init writes beside it.
const starterTests = `# Tests of policy.yaml, on a clock of their own. Run them with sluice test.
policy: policy.yaml

tests:
  - name: forty requests pass at once, and then twenty a second
    requests:
      - {at: 0s, times: 40, ip: 203.0.113.9, url: /, expect: {status: 200}}
      - {at: 0s, ip: 203.0.113.9, url: /, expect: {status: 429, limit: per_ip, retry_after: 1}}
      - {at: 0s, ip: 203.0.113.10, url: /, expect: {status: 200}}        # another client
      - {at: 50ms, ip: 203.0.113.9, url: /, expect: {status: 200}}       # a twentieth of a second later

  - name: who tries many passwords has to wait
    requests:
      - {at: 0s, times: 5, url: /login, method: POST, expect: {status: 200, route: login}}
      - {at: 0s, url: /login, method: POST, expect: {status: 429, limit: login, retry_after: 6}}
      - {at: 7s, url: /login, method: POST, expect: {status: 200}}

  - name: some networks are refused, and nothing counts a health check
    requests:
      - {ip: 192.0.2.7, url: /, expect: {status: 403, by: access, limit: blocked}}
      - {times: 1000, ip: 192.0.2.7, url: /healthz, expect: {status: 200}}
`
