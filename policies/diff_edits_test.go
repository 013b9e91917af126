package policies

// everyField is a policy that says something with every key of the language.
const everyField = `version: 1
mode: enforce
client_ip: {trusted_proxies: [10.0.0.0/8], header: X-Forwarded-For, direct: allow, ipv6_prefix: 64}
identity:
  sources:
    - api_key: {header: X-Key, scheme: Bearer, prefix: sk_}
    - api_key: {query: api_key}
    - api_key: {cookie: key}
    - jwt: {header: X-Token, jwks_file: jwks.json, issuer: "https://id.example", audience: api, tenant_claim: org, user_claim: sub, scope_claim: scope, plan_claim: plan, leeway: 30s}
    - jwt: {query: token, jwks_file: jwks.json, issuer: "https://id2.example", audience: api, tenant_claim: org}
    - jwt: {cookie: token, jwks_file: jwks.json, issuer: "https://id3.example", audience: api, tenant_claim: org}
    - client_cert: {}
    - auth_request: {location: /oauth2/auth, user_header: X-User, tenant_header: X-Org}
  missing: {plan: free}
  invalid: {deny: 401}
  unlisted: {plan: free}
edge:
  access:
    - {name: first, exempt: {cidrs: [198.18.0.0/24], user_agents: ['monitor']}, when: {query: {t: present}}}
    - {name: second, allow: {countries: [DE], asns: [64500]}, routes: [home]}
    - {name: third, deny: {continents: [AN], groups: [eu_members]}, status: 451, mode: enforce, routes: [home, files], when: {methods: [GET], headers: {X-A: absent}, cookies: {c: present}}}
  limits:
    plain: {per: ip, rate: 100/s, burst: 200, expect: 1000, delay: 50, routes: [home], mode: enforce}
    try: {per: ip, rate: 9/s, burst: 42, routes: [files], mode: enforce}
    conn: {per: ip, connections: 50, routes: [home], only: {cidrs: [10.0.0.0/8]}, except: {cidrs: [10.1.0.0/16]}, when: {methods: [GET]}}
  nodes: 2
limits:
  all: {per: global, rate: 1000/s, burst: 2000, sync: leased, reserve: {high: 20%, normal: 10%}}
plans:
  free:
    priority: normal
    limits:
      speed: {per: key, rate: 10/s, burst: 50, wait: 250ms, mode: enforce, count: units, status: 429}
      monthly: {per: tenant, quota: 10000/month, timezone: Europe/Berlin, anchor_day: 15, accounting: hard, overage: 10, notify: [80, 90], status: 402}
      slide: {per: tenant, window: 3000/1m, algorithm: sliding}
      jobs: {per: tenant, concurrency: 10, lease: 2m}
      again: {per: key, retries: 60/m}
  pro: {extends: free, limits: {speed: {burst: 500}, monthly: {quota: 20000/month}}}
  other: {limits: {speed: {per: key, rate: 1/s, burst: 40}, daily: {per: tenant, quota: 100/day}, wide: {per: tenant, window: 10/1m}, test: {per: tenant, rate: 9/s, burst: 41, mode: enforce}}}
tenants:
  - id: acme
    name: Acme
    plan: free
    disabled: false
    claim: acme-1
    cidrs: [192.0.2.0/24]
    keys: [{id: web, sha256: aff85b06e3327cdb725a9e56ca5ddc5a72a358d21f38b621e3f4dbf2ccef43bc, plan: pro, cidrs: [192.0.2.7], simulate: speed, disabled: false}]
    cert_sha256: [9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08]
  - id: over
    plan: free
    overrides: {speed: {rate: 30/s, burst: 60, wait: 1s}, slide: {window: 4000/1m}, monthly: {quota: 30000/month, overage: 20}, jobs: {concurrency: 20}, again: {retries: 90/m}}
    grants: [{limit: monthly, add: 500, from: 2026-12-01, until: 2026-12-31, reason: "launch"}]
tenant_files: [more.yaml]
routes:
  - {name: health, match: {exact: /healthz}, exempt: true}
  - {name: home, match: {prefix: /home, hosts: [www.example], methods: [GET]}, service: true, cost: 2, on_store_down: open, plans: [free, pro]}
  - {name: files, match: {regex: '^/files/'}, cost_from: {response_header: X-Cost, max: 40}}
  - {name: chat, match: {prefix: /chat}, cost: 3, cost_from: {report: 10m, max: 40}, limits: {talk: {per: ip, rate: 5/s, burst: 50}}}
  - {name: rest, match: {prefix: /}}
responses:
  headers: [ratelimit]
  retry_after_jitter: 10%
  body: json
  messages: {en: "slow down"}
  support_url: "https://example.com/limits"
notifications: [{webhook: "https://hooks.example/a", secret_env: SECRET}]
`

// edit is a change of one key in everyField, and what it means. Without an old
// text, it is something that a policy of nothing gets.
type edit struct {
	old, new string
	scope    Scope
	want     []Effect
}

var (
	tighter   = []Effect{EffectTightened}
	looser    = []Effect{EffectLoosened}
	other     = []Effect{EffectChanged}
	anewOther = []Effect{EffectRestarts, EffectChanged}
)

// edits has one for each key of the language, by the type that the key is of. A
// key that is not here has no diff.
func edits() map[string][]edit {
	return map[string][]edit{
		"Policy.version":      nil, // there is one
		"Policy.mode":         {{"mode: enforce\nclient", "mode: shadow\nclient", ScopePolicy, looser}, {"mode: enforce\nclient", "mode: disabled\nclient", ScopePolicy, looser}},
		"Policy.client_ip":    {{"client_ip: {trusted_proxies: [10.0.0.0/8], header: X-Forwarded-For, direct: allow, ipv6_prefix: 64}\n", "client_ip: {ipv6_prefix: 56}\n", ScopeClient, []Effect{EffectTightened, EffectChanged}}},
		"Policy.identity":     {{"", "identity: {sources: [{client_cert: {}}]}\n", ScopeIdentity, []Effect{EffectTightened, EffectAdded}}},
		"Policy.edge":         {{"", "edge: {limits: {a: {per: ip, rate: 9/s, burst: 9}}}\n", ScopeEdgeLimit, []Effect{EffectTightened, EffectAdded}}},
		"Policy.limits":       {{"limits:\n  all:", "limits:\n  every:", ScopeLimit, []Effect{EffectTightened, EffectLoosened, EffectAdded, EffectRemoved}}},
		"Policy.plans":        {{"  other: {limits: {speed: {per: key, rate: 1/s, burst: 40}, daily: {per: tenant, quota: 100/day}, wide: {per: tenant, window: 10/1m}, test: {per: tenant, rate: 9/s, burst: 41, mode: enforce}}}\n", "", ScopePlan, []Effect{EffectRemoved}}},
		"Policy.tenants":      {{"  - id: acme\n", "  - id: acme2\n", ScopeTenant, []Effect{EffectTightened, EffectLoosened, EffectAdded, EffectRemoved}}},
		"Policy.tenant_files": {{"[more.yaml]", "[less.yaml]", ScopeTenant, []Effect{EffectTightened, EffectRemoved}}},
		"Policy.routes":       {{"  - {name: rest, match: {prefix: /}}\n", "", ScopeRoute, []Effect{EffectRemoved}}},
		"Policy.responses":    {{"body: json", "body: text", ScopeResponses, other}},
		"Policy.notifications": {{"notifications: [{webhook: \"https://hooks.example/a\", secret_env: SECRET}]\n", "", ScopeNotifications,
			[]Effect{EffectRemoved}}},

		"ClientIPSpec.trusted_proxies": {{"trusted_proxies: [10.0.0.0/8]", "trusted_proxies: [10.0.0.0/9]", ScopeClient, other}},
		"ClientIPSpec.header":          {{"header: X-Forwarded-For", "header: proxy_protocol", ScopeClient, other}},
		"ClientIPSpec.direct":          {{"direct: allow", "direct: deny", ScopeClient, tighter}},
		"ClientIPSpec.ipv6_prefix":     {{"ipv6_prefix: 64", "ipv6_prefix: 56", ScopeClient, tighter}},

		"IdentitySpec.sources":          {{"    - api_key: {cookie: key}\n", "", ScopeIdentity, []Effect{EffectTightened, EffectRemoved}}},
		"IdentitySpec.missing":          {{"missing: {plan: free}", "missing: {deny: 401}", ScopeIdentity, tighter}},
		"IdentitySpec.invalid":          {{"invalid: {deny: 401}", "invalid: {plan: free}", ScopeIdentity, looser}},
		"IdentitySpec.unlisted":         {{"unlisted: {plan: free}", "unlisted: {deny: 403}", ScopeIdentity, tighter}},
		"Fallback.plan":                 {{"missing: {plan: free}", "missing: {plan: other}", ScopeIdentity, nil}},
		"Fallback.deny":                 {{"invalid: {deny: 401}", "invalid: {deny: 403}", ScopeIdentity, other}},
		"SourceSpec.api_key":            {{"    - api_key: {query: api_key}\n    - api_key: {cookie: key}\n", "    - api_key: {cookie: key}\n    - api_key: {query: api_key}\n", ScopeIdentity, []Effect{EffectMoved}}},
		"SourceSpec.jwt":                {{"    - jwt: {query: token, jwks_file: jwks.json, issuer: \"https://id2.example\", audience: api, tenant_claim: org}\n", "", ScopeIdentity, []Effect{EffectTightened, EffectRemoved}}},
		"SourceSpec.client_cert":        {{"    - client_cert: {}\n", "", ScopeIdentity, []Effect{EffectTightened, EffectRemoved}}},
		"SourceSpec.auth_request":       {{"    - auth_request: {location: /oauth2/auth, user_header: X-User, tenant_header: X-Org}\n", "", ScopeIdentity, []Effect{EffectTightened, EffectRemoved}}},
		"APIKeySpec.header":             {{"header: X-Key, scheme: Bearer", "header: X-Other, scheme: Bearer", ScopeIdentity, nil}},
		"APIKeySpec.query":              {{"query: api_key", "query: apikey", ScopeIdentity, nil}},
		"APIKeySpec.cookie":             {{"cookie: key}", "cookie: the-key}", ScopeIdentity, nil}},
		"APIKeySpec.scheme":             {{"scheme: Bearer, ", "", ScopeIdentity, nil}},
		"APIKeySpec.prefix":             {{"prefix: sk_", "prefix: pk_", ScopeIdentity, nil}},
		"JWTSpec.header":                {{"header: X-Token", "header: X-JWT", ScopeIdentity, nil}},
		"JWTSpec.query":                 {{"query: token", "query: jwt", ScopeIdentity, nil}},
		"JWTSpec.cookie":                {{"cookie: token", "cookie: jwt", ScopeIdentity, nil}},
		"JWTSpec.issuer":                {{"https://id.example", "https://login.example", ScopeIdentity, nil}},
		"JWTSpec.jwks_file":             {{"header: X-Token, jwks_file: jwks.json", "header: X-Token, jwks_file: keys.json", ScopeIdentity, other}},
		"JWTSpec.audience":              {{"id.example\", audience: api", "id.example\", audience: web", ScopeIdentity, other}},
		"JWTSpec.tenant_claim":          {{"tenant_claim: org, user", "tenant_claim: org_id, user", ScopeIdentity, other}},
		"JWTSpec.user_claim":            {{"user_claim: sub", "user_claim: uid", ScopeIdentity, other}},
		"JWTSpec.scope_claim":           {{"scope_claim: scope", "scope_claim: scp", ScopeIdentity, other}},
		"JWTSpec.plan_claim":            {{"plan_claim: plan", "plan_claim: tier", ScopeIdentity, other}},
		"JWTSpec.leeway":                {{"leeway: 30s", "leeway: 1m", ScopeIdentity, other}},
		"AuthRequestSpec.location":      {{"location: /oauth2/auth", "location: /auth", ScopeIdentity, other}},
		"AuthRequestSpec.user_header":   {{"user_header: X-User", "user_header: X-U", ScopeIdentity, other}},
		"AuthRequestSpec.tenant_header": {{"tenant_header: X-Org", "tenant_header: X-O", ScopeIdentity, other}},

		"EdgeSpec.access": {{"    - {name: first, exempt: {cidrs: [198.18.0.0/24], user_agents: ['monitor']}, when: {query: {t: present}}}\n", "", ScopeAccess, []Effect{EffectTightened, EffectRemoved}}},
		"EdgeSpec.limits": {{"    plain: {", "    plane: {", ScopeEdgeLimit, []Effect{EffectTightened, EffectLoosened, EffectAdded, EffectRemoved}}},
		"EdgeSpec.nodes":  {{"nodes: 2", "nodes: 4", ScopeEdge, tighter}},

		"AccessSpec.name":     {{"name: third", "name: last", ScopeAccess, []Effect{EffectTightened, EffectLoosened, EffectAdded, EffectRemoved}}},
		"AccessSpec.exempt":   {{"name: first, exempt", "name: first, deny", ScopeAccess, tighter}},
		"AccessSpec.allow":    {{"name: second, allow", "name: second, exempt", ScopeAccess, looser}},
		"AccessSpec.deny":     {{"continents: [AN], groups: [eu_members]}", "continents: [AN]}", ScopeAccess, looser}},
		"AccessSpec.status":   {{"status: 451", "status: 403", ScopeAccess, other}},
		"AccessSpec.mode":     {{"status: 451, mode: enforce", "status: 451, mode: shadow", ScopeAccess, looser}},
		"AccessSpec.routes":   {{"routes: [home, files]", "routes: [home]", ScopeAccess, looser}, {", routes: [home, files]", "", ScopeAccess, tighter}, {"asns: [64500]}, routes: [home]", "asns: [64500]}, routes: [home, files]", ScopeAccess, looser}},
		"AccessSpec.when":     {{", when: {query: {t: present}}", "", ScopeAccess, looser}, {", when: {methods: [GET], headers: {X-A: absent}, cookies: {c: present}}", "", ScopeAccess, tighter}},
		"Clients.cidrs":       {{"cidrs: [198.18.0.0/24]", "cidrs: [198.18.0.0/24, 198.18.1.0/24]", ScopeAccess, looser}},
		"Clients.countries":   {{"countries: [DE]", "countries: [DE, unknown]", ScopeAccess, looser}},
		"Clients.continents":  {{"continents: [AN]", "continents: [AN, AF]", ScopeAccess, tighter}},
		"Clients.groups":      {{", groups: [eu_members]", "", ScopeAccess, looser}},
		"Clients.asns":        {{"asns: [64500]", "asns: [64500, unknown]", ScopeAccess, looser}},
		"Clients.user_agents": {{"'monitor'", "'monitor', 'probe'", ScopeAccess, looser}},
		"WhenSpec.methods":    {{"when: {methods: [GET], headers", "when: {methods: [GET, PUT], headers", ScopeAccess, other}},
		"WhenSpec.headers":    {{"X-A: absent", "X-A: present", ScopeAccess, other}},
		"WhenSpec.cookies":    {{"cookies: {c: present}", "cookies: {d: present}", ScopeAccess, other}},
		"WhenSpec.query":      {{"query: {t: present}", "query: {t: '^a'}", ScopeAccess, other}},

		"EdgeLimitSpec.per":         {{"plain: {per: ip", "plain: {per: [ip, server]", ScopeEdgeLimit, []Effect{EffectRestarts, EffectLoosened}}},
		"EdgeLimitSpec.rate":        {{"rate: 100/s", "rate: 50/s", ScopeEdgeLimit, tighter}},
		"EdgeLimitSpec.burst":       {{"burst: 200,", "burst: 300,", ScopeEdgeLimit, looser}},
		"EdgeLimitSpec.connections": {{"connections: 50", "connections: 60", ScopeEdgeLimit, looser}, {"connections: 50", "rate: 3/s, burst: 9", ScopeEdgeLimit, anewOther}},
		"EdgeLimitSpec.expect":      {{"expect: 1000", "expect: 9000", ScopeEdgeLimit, []Effect{EffectRestarts}}},
		"EdgeLimitSpec.delay":       {{"delay: 50", "delay: all", ScopeEdgeLimit, tighter}, {"delay: 50", "delay: none", ScopeEdgeLimit, looser}},
		"EdgeLimitSpec.routes":      {{"delay: 50, routes: [home]", "delay: 50, routes: [home, chat]", ScopeEdgeLimit, tighter}},
		"EdgeLimitSpec.only":        {{"only: {cidrs: [10.0.0.0/8]}, ", "", ScopeEdgeLimit, tighter}},
		"EdgeLimitSpec.except":      {{"except: {cidrs: [10.1.0.0/16]}", "except: {cidrs: [10.1.0.0/16, 10.2.0.0/16]}", ScopeEdgeLimit, looser}},
		"EdgeLimitSpec.when":        {{", when: {methods: [GET]}}\n  nodes", "}\n  nodes", ScopeEdgeLimit, tighter}},
		"EdgeLimitSpec.mode":        {{"routes: [files], mode: enforce", "routes: [files], mode: shadow", ScopeEdgeLimit, looser}},

		"LimitSpec.per":         {{"speed: {per: key, rate: 10/s", "speed: {per: tenant, rate: 10/s", ScopePlan, []Effect{EffectTightened, EffectRestarts}}},
		"LimitSpec.mode":        {{"burst: 41, mode: enforce", "burst: 41, mode: shadow", ScopePlan, looser}},
		"LimitSpec.count":       {{"count: units", "count: requests", ScopePlan, []Effect{EffectRestarts, EffectLoosened}}, {"count: units", "count: {status: [401]}", ScopePlan, []Effect{EffectRestarts, EffectLoosened}}},
		"LimitSpec.status":      {{"status: 402", "status: 429", ScopePlan, other}},
		"LimitSpec.rate":        {{"rate: 10/s", "rate: 5/s", ScopePlan, tighter}, {"rate: 5/s, burst: 50", "rate: 6/s, burst: 50", ScopeRoute, looser}},
		"LimitSpec.burst":       {{"burst: 50, wait", "burst: 49, wait", ScopePlan, tighter}},
		"LimitSpec.wait":        {{"wait: 250ms", "wait: 500ms", ScopePlan, looser}},
		"LimitSpec.sync":        {{"sync: leased, ", "", ScopeLimit, looser}},
		"LimitSpec.reserve":     {{", reserve: {high: 20%, normal: 10%}", "", ScopeLimit, looser}},
		"LimitSpec.window":      {{"window: 3000/1m", "window: 2900/1m", ScopePlan, tighter}, {"window: 10/1m", "window: 10/2m", ScopePlan, []Effect{EffectTightened, EffectRestarts}}},
		"LimitSpec.algorithm":   {{"algorithm: sliding", "algorithm: log", ScopePlan, []Effect{EffectTightened, EffectRestarts}}, {"algorithm: sliding", "algorithm: fixed", ScopePlan, anewOther}},
		"LimitSpec.quota":       {{"quota: 100/day", "quota: unlimited/day", ScopePlan, looser}, {"quota: 100/day", "quota: 100/hour", ScopePlan, []Effect{EffectRestarts, EffectLoosened}}, {"quota: 100/day", "quota: 200/week", ScopePlan, anewOther}},
		"LimitSpec.timezone":    {{"Europe/Berlin", "Asia/Tokyo", ScopePlan, anewOther}},
		"LimitSpec.anchor_day":  {{"anchor_day: 15", "anchor_day: 16", ScopePlan, anewOther}},
		"LimitSpec.accounting":  {{"accounting: hard", "accounting: soft", ScopePlan, looser}},
		"LimitSpec.overage":     {{"overage: 10,", "overage: 5,", ScopePlan, tighter}},
		"LimitSpec.notify":      {{"notify: [80, 90]", "notify: [80]", ScopePlan, other}},
		"LimitSpec.concurrency": {{"concurrency: 10", "concurrency: 9", ScopePlan, tighter}},
		"LimitSpec.lease":       {{"lease: 2m", "lease: 1m", ScopePlan, looser}},
		"LimitSpec.retries":     {{"retries: 60/m", "retries: 30/m", ScopePlan, tighter}},
		"Reserve.high":          {{"high: 20%", "high: 30%", ScopeLimit, tighter}},
		"Reserve.normal":        {{"normal: 10%", "normal: 5%", ScopeLimit, looser}},

		"PlanSpec.extends":  {{"pro: {extends: free, limits: {speed: {burst: 500}, monthly: {quota: 20000/month}}}", "pro: {limits: {speed: {per: key, rate: 10/s, burst: 500}}}", ScopePlan, nil}},
		"PlanSpec.priority": {{"priority: normal", "priority: low", ScopePlan, tighter}},
		"PlanSpec.limits":   {{", wide: {per: tenant, window: 10/1m}", "", ScopePlan, []Effect{EffectLoosened, EffectRemoved}}},

		"TenantSpec.id":          {{"id: acme\n", "id: acme2\n", ScopeTenant, []Effect{EffectTightened, EffectLoosened, EffectAdded, EffectRemoved}}},
		"TenantSpec.name":        {{"name: Acme", "name: ACME", ScopeTenant, other}},
		"TenantSpec.plan":        {{"name: Acme\n    plan: free", "name: Acme\n    plan: pro", ScopeTenant, []Effect{EffectLoosened, EffectMoved}}},
		"TenantSpec.disabled":    {{"disabled: false\n", "disabled: true\n", ScopeTenant, tighter}},
		"TenantSpec.claim":       {{"claim: acme-1", "claim: acme-2", ScopeTenant, other}},
		"TenantSpec.cidrs":       {{"cidrs: [192.0.2.0/24]", "cidrs: [192.0.2.0/25]", ScopeTenant, []Effect{EffectTightened, EffectLoosened}}, {"    cidrs: [192.0.2.0/24]\n", "", ScopeTenant, looser}},
		"TenantSpec.keys":        {{"disabled: false}]\n", "disabled: false}, {id: two, sha256: 27e947ee7e21e903ef0409ed8a6038581c08ef7357aa2daeff79d5e61351d72c}]\n", ScopeKey, []Effect{EffectLoosened, EffectAdded}}},
		"TenantSpec.cert_sha256": {{"    cert_sha256: [9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08]\n", "", ScopeTenant, tighter}},
		"TenantSpec.overrides":   {{"slide: {window: 4000/1m}, ", "", ScopeTenant, tighter}},
		"TenantSpec.grants":      {{"    grants: [{limit: monthly, add: 500, from: 2026-12-01, until: 2026-12-31, reason: \"launch\"}]\n", "", ScopeTenant, []Effect{EffectTightened, EffectChanged}}},

		"KeySpec.id":       {{"id: web", "id: web2", ScopeKey, []Effect{EffectTightened, EffectLoosened, EffectAdded, EffectRemoved}}},
		"KeySpec.sha256":   {{"sha256: aff8", "sha256: bff8", ScopeKey, []Effect{EffectTightened, EffectLoosened}}},
		"KeySpec.plan":     {{"bc, plan: pro", "bc, plan: free", ScopeKey, []Effect{EffectTightened, EffectMoved}}},
		"KeySpec.cidrs":    {{", cidrs: [192.0.2.7]", "", ScopeKey, looser}},
		"KeySpec.simulate": {{"simulate: speed", "simulate: again", ScopeKey, other}, {", simulate: speed", "", ScopeKey, looser}},
		"KeySpec.disabled": {{"simulate: speed, disabled: false", "simulate: speed, disabled: true", ScopeKey, tighter}},

		"OverrideSpec.rate":        {{"rate: 30/s", "rate: 29/s", ScopeTenant, tighter}},
		"OverrideSpec.burst":       {{"burst: 60", "burst: 61", ScopeTenant, looser}},
		"OverrideSpec.wait":        {{"wait: 1s", "wait: 2s", ScopeTenant, looser}},
		"OverrideSpec.window":      {{"window: 4000/1m", "window: 3000/1m", ScopeTenant, tighter}},
		"OverrideSpec.quota":       {{"quota: 30000/month", "quota: 0/month", ScopeTenant, tighter}},
		"OverrideSpec.overage":     {{"overage: 20", "overage: 21", ScopeTenant, looser}},
		"OverrideSpec.concurrency": {{"concurrency: 20", "concurrency: 19", ScopeTenant, tighter}},
		"OverrideSpec.retries":     {{"retries: 90/m", "retries: 91/m", ScopeTenant, looser}},

		"GrantSpec.limit":  {{"      monthly: {per: tenant, quota: 10000", "      other: {per: tenant, quota: 5/day}\n      monthly: {per: tenant, quota: 10000", "", nil}},
		"GrantSpec.add":    {{"add: 500", "add: 600", ScopeTenant, []Effect{EffectTightened, EffectLoosened}}},
		"GrantSpec.from":   {{"from: 2026-12-01", "from: 2026-12-02", ScopeTenant, []Effect{EffectTightened, EffectLoosened}}},
		"GrantSpec.until":  {{"until: 2026-12-31", "until: 2026-12-30", ScopeTenant, []Effect{EffectTightened, EffectLoosened}}},
		"GrantSpec.reason": {{"reason: \"launch\"", "reason: \"party\"", ScopeTenant, other}},

		"RouteSpec.name":               {{"name: rest", "name: others", ScopeRoute, []Effect{EffectAdded, EffectRemoved}}},
		"RouteSpec.match":              {{"prefix: /chat", "prefix: /talk", ScopeRoute, other}},
		"RouteSpec.exempt":             {{"exempt: true", "exempt: false", ScopeRoute, tighter}},
		"RouteSpec.service":            {{"service: true, cost: 2, on_store_down: open, plans: [free, pro]", "service: false", ScopeRoute, nil}},
		"RouteSpec.cost":               {{"cost: 3", "cost: 4", ScopeRoute, tighter}},
		"RouteSpec.cost_from":          {{", cost_from: {response_header: X-Cost, max: 40}", "", ScopeRoute, other}},
		"RouteSpec.on_store_down":      {{"on_store_down: open", "on_store_down: closed", ScopeRoute, tighter}, {"on_store_down: open", "on_store_down: local", ScopeRoute, tighter}},
		"RouteSpec.plans":              {{"plans: [free, pro]", "plans: [free]", ScopeRoute, tighter}, {", plans: [free, pro]", "", ScopeRoute, looser}},
		"RouteSpec.limits":             {{", limits: {talk: {per: ip, rate: 5/s, burst: 50}}", "", ScopeRoute, []Effect{EffectLoosened, EffectRemoved}}},
		"MatchSpec.exact":              {{"exact: /healthz", "exact: /health", ScopeRoute, other}},
		"MatchSpec.prefix":             {{"prefix: /home", "prefix: /house", ScopeRoute, other}},
		"MatchSpec.regex":              {{"'^/files/'", "'^/file/'", ScopeRoute, other}},
		"MatchSpec.hosts":              {{"hosts: [www.example]", "hosts: [www.example, example]", ScopeRoute, other}},
		"MatchSpec.methods":            {{"www.example], methods: [GET]", "www.example], methods: [GET, HEAD]", ScopeRoute, other}},
		"CostFromSpec.response_header": {{"response_header: X-Cost", "response_header: X-Price", ScopeRoute, other}},
		"CostFromSpec.report":          {{"report: 10m", "report: 5m", ScopeRoute, other}},
		"CostFromSpec.max":             {{"X-Cost, max: 40", "X-Cost, max: 30", ScopeRoute, looser}},

		"ResponsesSpec.headers":            {{"headers: [ratelimit]", "headers: [x-ratelimit]", ScopeResponses, other}},
		"ResponsesSpec.retry_after_jitter": {{"10%\n", "20%\n", ScopeResponses, other}},
		"ResponsesSpec.body":               {{"body: json", "body: text", ScopeResponses, other}},
		"ResponsesSpec.messages":           {{"slow down", "slower", ScopeResponses, other}, {"{en: \"slow down\"}", "{en: \"slow down\", de: x}", ScopeResponses, other}},
		"ResponsesSpec.support_url":        {{"example.com/limits", "example.com/help", ScopeResponses, other}},
		"NotificationSpec.webhook":         {{"hooks.example/a", "hooks.example/b", ScopeNotifications, []Effect{EffectAdded, EffectRemoved}}},
		"NotificationSpec.secret_env":      {{"secret_env: SECRET", "secret_env: SECRET2", ScopeNotifications, other}},
	}
}
