package webhook_test

import (
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"

	"waybill/adapters/webhook"
)

func TestCheckURLAccepts(t *testing.T) {
	t.Parallel()
	allow := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("::1/128")}
	for _, raw := range []string{
		"https://example.com", "https://example.com:8443/hook?a=b&c", "HTTPS://EXAMPLE.COM/", "https://a_b.example.com./",
		"https://8.8.8.8/", "https://[2606:4700::1111]/", "https://xn--bcher-kva.example/", "https://example.com/?next=http://x/",
		"http://127.0.0.1:8080/x", "http://localhost:8080/", "http://10.1.2.3/", "http://[::1]/", "https://10.1.2.3/",
		"http://[::ffff:10.1.2.3]/", "https://[::ffff:8.8.8.8]/", "https://[0:0:0:0:0:0:0:1]/",
	} {
		if err := webhook.CheckURL(raw, allow); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// refusedURLs are refused with no network allowed.
var refusedURLs = []string{
	"", "x", "/hook", "example.com/hook", "//example.com/", "https://", "https:///x", "https:example.com", "https://:443/",
	"ftp://example.com/", "file:///etc/passwd", "javascript:alert(1)", "http://example.com/", "http://8.8.8.8/",
	"https://user:pw@example.com/", "https://user@example.com/", "https://@example.com/", "https://example.com/#x", "https://example.com/#",
	"https://example.com:0/", "https://example.com:65536/", "https://example.com:x/", "https://example.com:-1/",
	"https://exa mple.com/", "https://example..com/", "https://.example.com/", "https://bücher.example/", "https://１２７.0.0.1/",
	"https://example.com/\n", " https://example.com/", "https://exam\x00ple.com/", "https://%31%32%37.0.0.1/", "https://a.b%00/",
	"https://127.0.0.1/", "https://127.1/", "https://0x7f.1/", "https://0X7F.1/", "https://2130706433/", "https://017700000001/",
	"https://0x7f000001/", "https://127.0.0.1./", "https://0/", "https://0.0.0.0/", "https://169.254.169.254/", "https://10.0.0.1/",
	"https://172.16.0.1/", "https://192.168.0.1/", "https://100.64.0.1/", "https://224.0.0.1/", "https://255.255.255.255/", "https://192.0.2.1/",
	"https://[::]/", "https://[::1]/", "https://[::ffff:10.0.0.1]/", "https://[::ffff:7f00:1]/", "https://[::127.0.0.1]/",
	"https://[64:ff9b::a00:1]/", "https://[2002:a00:1::]/", "https://[2001:0:1::]/", "https://[fe80::1]/", "https://[fe80::1%25eth0]/",
	"https://[fc00::1]/", "https://[ff02::1]/", "https://[2001:db8::1]/", "https://[::1/", "https://[1.2.3.4]x/",
	"https://localhost/", "https://LOCALHOST./", "https://a.localhost/", "http://localhost/", "http://169.254.169.254/", "http://2130706433/",
	"https://1.2.3.4.5/", "https://256.1.1.1/", "https://1.2.3.999/", "https://0x/", "https://08.8.8.8/", "https://foo.123/", "https://0x08080808/", "https://134744072/",
	"https://example.com/" + strings.Repeat("x", 3000), "https://" + strings.Repeat("a.", 200) + "com/",
}

func TestCheckURLRefuses(t *testing.T) {
	t.Parallel()
	for _, raw := range refusedURLs {
		err := webhook.CheckURL(raw, nil)
		if err == nil {
			t.Errorf("%q is accepted", raw)
			continue
		}
		if strings.Contains(err.Error(), "pw") {
			t.Errorf("%q: %v", raw, err)
		}
	}
	for _, raw := range []string{"http://0x7f.1/", "http://2130706433/", "http://10.0.0.1/", "http://[::1]/", "http://example.com/"} {
		if webhook.CheckURL(raw, loopback) == nil {
			t.Errorf("%q is accepted where loopback is allowed", raw)
		}
	}
}

func TestMappedPrefixAllowsItsAddresses(t *testing.T) {
	t.Parallel()
	allow := []netip.Prefix{netip.MustParsePrefix("::ffff:10.0.0.0/104")}
	if err := webhook.CheckURL("http://10.9.9.9/", allow); err != nil {
		t.Error(err)
	}
	if webhook.CheckURL("http://11.0.0.1/", allow) == nil {
		t.Error("more than the prefix is allowed")
	}
}

func TestRedactURL(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"":                                  "",
		"https://example.com/a%2Fb":         "https://example.com/a%2Fb",
		"https://u:pw@example.com/x#frag":   "https://example.com/x",
		"https://h/?b=pw&a=pw&b=&c=pw=pw":   "https://h/?b=***&a=***&b=***&c=***",
		"https://h/?pw":                     "https://h/?***",
		"https://h/?a=1;b=pw&&x=pw":         "https://h/?a=***&&x=***",
		"https://h:8443/?":                  "https://h:8443/?",
		"https://u:pw@h/%zz?pw":             "***",
		"mailto:pw@example.com":             "***",
		"https://h/\x7f?pw":                 "***",
		"https://h/?a\xff=pw":               "https://h/?a\uFFFD=***",
		"//u:pw@h/x?y=pw":                   "//h/x?y=***",
		"https://h/?a%20b=pw&%70w%3d%26=pw": "https://h/?a%20b=***&%70w%3d%26=***",
	} {
		if got := webhook.RedactURL(raw); got != want {
			t.Errorf("%q: got %q, want %q", raw, got, want)
		}
	}
}

func FuzzURL(f *testing.F) {
	for _, raw := range refusedURLs {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		_ = webhook.CheckURL(raw, loopback)
		if got := webhook.RedactURL(raw); !utf8.ValidString(got) || strings.Contains(got, "#") {
			t.Fatalf("%q", got)
		}
		if err := webhook.CheckURL(webhook.RedactURL("https://user:hunter2@h/?k=hunter2&hunter2#"+raw), nil); err != nil &&
			strings.Contains(err.Error(), "hunter2") {
			t.Fatal(err)
		}
	})
}
