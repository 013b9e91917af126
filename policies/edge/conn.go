package edge

// Conn is what one limit on connections said of a request.
type Conn struct {
	Limit    string
	Unused   string // why it does not count this request; empty: it does
	Key      string
	Max      int64
	Open     int64 // requests under way before this one
	Exceeded bool
	Shadow   bool
}

// held is a counter that a visit counts in.
type held struct {
	limit *edgeLimit
	key   string
}

// Connect asks limit_conn, which comes when limit_req has held the request for as
// long as it must. The first limit that is reached refuses, and then none counts it.
func (m *Model) Connect(v *Visit) {
	v.Verdict, v.Limit, v.Wait, v.Shadow = Passed, "", 0, false
	if v.Location == nil || !m.counting[v.Location.Index] {
		return
	}
	dry := false
	for _, i := range v.Location.Edge {
		l := &m.limits[i]
		if l.open == nil {
			continue
		}
		dry = dry || l.shadow
		c := Conn{Limit: l.Name, Unused: m.unused(v, l), Max: l.Connections, Shadow: l.shadow}
		if c.Unused == "" {
			l.met = true
			m.key = m.appendKey(m.key[:0], l, v)
			c.Open = l.open[string(m.key)]
			c.Exceeded = c.Open >= l.Connections
		}
		if v.Trace != nil {
			if c.Unused == "" {
				c.Key = shownKey(m.key)
			}
			v.Trace.Conns = append(v.Trace.Conns, c)
		}
		switch {
		case c.Unused != "" || v.Limit != "":
		case c.Exceeded:
			v.Limit = l.Name
			m.Leave(v)
		default:
			key := string(m.key)
			l.open[key] = c.Open + 1
			v.held = append(v.held, held{l, key})
		}
	}
	if v.Limit != "" {
		v.Verdict, v.Shadow = EdgeConn, dry
	}
}

// Leave ends a request.
func (m *Model) Leave(v *Visit) {
	for _, h := range v.held {
		if h.limit.open[h.key]--; h.limit.open[h.key] == 0 {
			delete(h.limit.open, h.key)
		}
	}
	v.held = v.held[:0]
}
