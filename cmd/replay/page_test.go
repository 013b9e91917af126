package replay

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"golang.org/x/net/html"
)

// hostile is what somebody may write into a log to get into the page.
const hostile = `"'></title></svg><script>console.error("in")</script><img src=http://192.0.2.1/x onerror=console.error("in")>`

// hostileReport has names of strangers in every place that a log can reach.
func hostileReport(t *testing.T) *Report {
	t.Helper()
	policy := `version: 1
identity: {sources: [{auth_request: {location: /auth, user_header: X-User, tenant_header: X-Org}}], missing: {plan: free}, unlisted: {plan: free}}
plans: {free: {limits: {speed: {per: tenant, rate: %s, burst: 2}}}}
routes: [{name: api, match: {prefix: /v1}}, {name: other, match: {prefix: /other}, service: false}]
edge: {limits: {per_ip: {per: ip, rate: 1/m, burst: 3, routes: [other]}}}
`
	var lines []string
	for i := range 120 {
		at := fmt.Sprintf("%.3f", 1796094245+float64(i*11))
		tenant := hostile
		if i%3 == 0 {
			tenant = fmt.Sprintf("a-tenant-with-quite-a-long-name-%d", i%9)
		}
		lines = append(lines,
			fmt.Sprintf("192.0.2.1\t%s\tGET /v1/a HTTP/1.1\t%s", at, tenant),
			fmt.Sprintf("192.0.2.1\t%s\tGET /%s HTTP/1.1\t-", at, strings.ReplaceAll(hostile, " ", "%20")),
			fmt.Sprintf("192.0.2.%d\t%s\tGET /other HTTP/1.1\t-", i%2, at))
	}
	r := run(t, Options{Policy: compiled(t, fmt.Sprintf(policy, "1/m")), Against: compiled(t, fmt.Sprintf(policy, "2/m")), Tenant: "org"},
		`escape=none $remote_addr\t$msec\t$request\t$org`, lines...)
	r.Policy, r.Against = "policy"+hostile+".yaml", "old.yaml"
	r.Log.Bad = []Bad{{Problem: "odd", Lines: 1, Source: hostile, Line: 1}}
	if r.Offenders[0].Who != hostile || r.Changes.NewlyDenied == 0 || len(r.Unrouted) == 0 || r.Verdicts.Edge == 0 {
		t.Fatalf("the report has not what the test is about: %+v", r.Offenders)
	}
	return r
}

func drawn(t *testing.T, r *Report) string {
	t.Helper()
	var out strings.Builder
	if err := r.WritePage(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestPageIsAlone: the page asks nobody for anything, runs nothing, and every chart
// says in words what it shows, whatever stood in the log. C119
func TestPageIsAlone(t *testing.T) {
	root, err := html.Parse(strings.NewReader(drawn(t, hostileReport(t))))
	if err != nil {
		t.Fatal(err)
	}
	charts, tables, visible := 0, 0, ""
	for n := range root.Descendants() {
		if n.Type == html.TextNode && n.Parent.Data != "style" {
			visible += n.Data
		}
		if n.Type != html.ElementNode {
			continue
		}
		attr := map[string]string{}
		for _, a := range n.Attr {
			attr[a.Key] = a.Val
			if strings.HasPrefix(a.Key, "on") || (a.Key == "href" || a.Key == "src") && !strings.HasPrefix(a.Val, "data:") {
				t.Errorf("<%s %s=%q>", n.Data, a.Key, a.Val)
			}
		}
		switch n.Data {
		case "script", "img", "iframe", "object", "a", "image", "use", "foreignobject":
			t.Errorf("the page has <%s>", n.Data)
		case "svg":
			charts++
			if attr["role"] != "img" || attr["aria-label"] == "" && attr["aria-labelledby"] == "" {
				t.Errorf("a chart says nothing to those who do not see it: %v", attr)
			}
		case "table":
			tables++
		}
	}
	if charts < 4 || tables < 6 || !strings.Contains(visible, hostile) {
		t.Errorf("%d charts, %d tables; the hostile name is shown as it is: %v", charts, tables, strings.Contains(visible, hostile))
	}
}

// browser starts chromium; where CI=true it must be there.
func browser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("chromium is not there")
		}
		t.Skip("chromium is not there")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WSURLReadTimeout(2*time.Minute))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	return ctx
}

// TestPageInBrowser: on a phone and on a desk, dark and light, the page says nothing
// on the console, asks for nothing, and does not run over the side.
func TestPageInBrowser(t *testing.T) {
	ctx := browser(t)
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(drawn(t, hostileReport(t))), 0o600); err != nil {
		t.Fatal(err)
	}
	complaints := make(chan string, 1000)
	err := chromedp.Listen(ctx, func(e any) {
		switch e := e.(type) {
		case *runtime.EventConsoleAPICalled:
			complaints <- "console: " + string(e.Type)
		case *runtime.EventExceptionThrown:
			complaints <- "exception: " + e.ExceptionDetails.Text
		case *log.EventEntryAdded:
			complaints <- "log: " + e.Entry.Text
		case *network.EventRequestWillBeSent:
			if url := e.Request.URL; url != "file://"+file && !strings.HasPrefix(url, "data:") {
				complaints <- "request: " + url
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	backs := map[string]bool{}
	for _, width := range []int64{390, 1280} {
		for _, scheme := range []string{"light", "dark"} {
			back := look(t, ctx, file, width, scheme)
			backs[scheme+back] = true
		}
	}
	if len(backs) != 2 {
		t.Errorf("dark and light have the backgrounds %v", backs)
	}
	close(complaints)
	for c := range complaints {
		t.Error(c)
	}
}

// look opens the page on a screen and returns the colour of its background.
func look(t *testing.T, ctx context.Context, file string, width int64, scheme string) string {
	t.Helper()
	err := chromedp.Do(ctx, command(log.Enable, cdp.Empty{}), command(network.Enable, network.EnableParams{}),
		command(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 844, DeviceScaleFactor: 1, Mobile: width < 500}),
		command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}),
		chromedp.Navigate("file://"+file))
	if err != nil {
		t.Fatal(err)
	}
	sizes, err := chromedp.Run(ctx, chromedp.Evaluate[[]float64](`[document.documentElement.scrollWidth, document.querySelector(".chart").getBoundingClientRect().width]`))
	if err != nil {
		t.Fatal(err)
	}
	if sizes[0] > float64(width) || sizes[1] < float64(width)/2 {
		t.Errorf("%d wide, %s: the page is %v wide, its chart %v", width, scheme, sizes[0], sizes[1])
	}
	back, err := chromedp.Run(ctx, chromedp.Evaluate[string](`getComputedStyle(document.body).backgroundColor`))
	if err != nil {
		t.Fatal(err)
	}
	if dir := os.Getenv("SLUICE_SCREENSHOTS"); dir != "" {
		shot, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("replay-%d-%s.png", width, scheme)), shot, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return back
}

func command[P any](c cdp.Command[P, cdp.Empty], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}
