package authz

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// hookTimeout is how long a receiver may take to answer.
	hookTimeout = 10 * time.Second
	// hookHead is the largest head of an answer, in bytes; its body is not read.
	hookHead = 16 << 10
)

// The headers of a delivery, as the Standard Webhooks specification has them.
const (
	HeaderHookID        = "Webhook-Id"
	HeaderHookTimestamp = "Webhook-Timestamp" // Unix seconds
	HeaderHookSignature = "Webhook-Signature" // v1,BASE64
)

// webhook is one receiver.
type webhook struct {
	url    string // may hold a secret: it is never logged
	host   string
	name   string // in claims
	secret []byte
}

func newWebhook(to string, secret string) (webhook, error) {
	u, err := url.Parse(to)
	if err != nil {
		return webhook{}, errors.New("its URL cannot be read")
	}
	h := webhook{url: to, host: u.Host, name: name(to), secret: []byte(secret)}
	// The specification's own form of secrets.
	if text, ok := strings.CutPrefix(secret, "whsec_"); ok {
		if raw, err := base64.StdEncoding.DecodeString(text); err == nil {
			h.secret = raw
		}
	}
	return h, nil
}

// Sign is the signature of a delivery: v1, and the HMAC-SHA256 of
// ID.TIMESTAMP.BODY with the secret, in base64.
func Sign(secret []byte, id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// newHookClient follows no redirect: what is signed for one is not for another.
func newHookClient() *http.Client {
	return &http.Client{
		Timeout:       hookTimeout,
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, MaxResponseHeaderBytes: hookHead, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// errAway is the cause when nobody answers: then the others need not be tried.
var errAway = errors.New("the receiver does not answer")

// send delivers an event once. Its error names neither the URL nor the secret.
func (h *webhook) send(ctx context.Context, client *http.Client, e *happening, now time.Time) error {
	body, err := json.Marshal(e.Event)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return errors.New("its URL cannot be used")
	}
	timestamp := strconv.FormatInt(now.Unix(), 10)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "sluice")
	r.Header.Set(HeaderHookID, e.ID)
	r.Header.Set(HeaderHookTimestamp, timestamp)
	r.Header.Set(HeaderHookSignature, Sign(h.secret, e.ID, timestamp, body))
	resp, err := client.Do(r)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return fmt.Errorf("%w: %w", errAway, err)
	}
	_, _ = io.CopyN(io.Discard, resp.Body, hookHead) // so that the connection can be used again
	resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("the receiver answers %d", resp.StatusCode)
	}
	return nil
}
