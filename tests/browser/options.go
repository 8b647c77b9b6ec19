package browser

import (
	"fmt"
	"strings"
	"time"
)

// InsecureHost is a host name of this machine whose origin is not a secure context: navigator.locks,
// navigator.storage and crypto.randomUUID do not exist there.
const InsecureHost = "insecure.test"

// Options configure a browser. The zero value runs every tab at full speed, hidden or not.
type Options struct {
	// Throttling keeps Chromium's default throttling of hidden tabs: page timers run once per second at once, and
	// chained timers once per minute some seconds after Grace.
	Throttling bool

	// Grace is how long a tab is hidden before intensive throttling (one wake-up per minute) begins, in whole
	// seconds. 0 means Chromium's default: five minutes, or one minute for a page that has finished loading.
	Grace time.Duration

	// Shell runs Chromium's headless shell if one is installed. It is the same engine without the browser interface,
	// here with only the first of its two Wasm compilers, for little more than half of the processor time. It hides
	// no tab, has no back/forward cache, gives the focus to only one tab, and a trap in Wasm ends its renderer.
	Shell bool

	// Flags are further command line switches, "name" or "name=value", without the dashes. They override the
	// harness's own switches, except enable-features and disable-features, which are merged. "name=" removes a switch.
	Flags []string
}

// alwaysOn returns the switches of every browser.
func alwaysOn() map[string]any {
	return map[string]any{
		"headless":                               "new",
		"no-first-run":                           true,
		"no-default-browser-check":               true,
		"no-service-autorun":                     true,
		"disable-background-networking":          true,
		"disable-breakpad":                       true,
		"disable-crash-reporter":                 true,
		"disable-client-side-phishing-detection": true,
		"disable-component-update":               true,
		"disable-default-apps":                   true,
		"disable-dev-shm-usage":                  true,
		"disable-domain-reliability":             true,
		"disable-extensions":                     true,
		"disable-gpu":                            true,
		"disable-popup-blocking":                 true,
		"disable-prompt-on-repost":               true,
		"disable-sync":                           true,
		"enable-automation":                      true,
		"force-color-profile":                    "srgb",
		"hide-scrollbars":                        true,
		"metrics-recording-only":                 true,
		"mute-audio":                             true,
		"password-store":                         "basic",
		"use-mock-keychain":                      true,
		"host-resolver-rules":                    "MAP *.test 127.0.0.1",
	}
}

// flags returns the command line. With Throttling, no flag changes the speed of a hidden tab.
func (o Options) flags() map[string]any {
	flags := alwaysOn()
	// Each tab gets its own renderer: pages of one site do not share one. The insecure origin is not upgraded to
	// https.
	disabled := []string{"ProcessPerSiteUpToMainFrameThreshold", "Translate", "HttpsUpgrades",
		"HttpsFirstBalancedModeAutoEnable", "OptimizationHints", "MediaRouter", "DialMediaRouteProvider",
		"WebUIOmniboxPopup", "WebUIOmniboxAimPopup"} // a page of the address bar, rendered in every browser
	var enabled []string
	if o.Shell {
		flags["js-flags"] = "--liftoff-only"
	}
	switch {
	case !o.Throttling:
		flags["disable-background-timer-throttling"] = true
		flags["disable-backgrounding-occluded-windows"] = true
		flags["disable-renderer-backgrounding"] = true
	case o.Grace > 0:
		// Two features control this. The second applies to pages that have finished loading.
		n := max(1, int(o.Grace/time.Second))
		enabled = append(enabled,
			fmt.Sprintf("IntensiveWakeUpThrottling:grace_period_seconds/%d", n),
			fmt.Sprintf("QuickIntensiveWakeUpThrottlingAfterLoading:grace_period_seconds_loaded/%d", n))
	}
	for _, flag := range o.Flags {
		name, value, valued := strings.Cut(strings.TrimLeft(flag, "-"), "=")
		switch {
		case name == "enable-features":
			enabled = append(enabled, value)
		case name == "disable-features":
			disabled = append(disabled, value)
		case valued && value == "":
			delete(flags, name)
		case valued:
			flags[name] = value
		default:
			flags[name] = true
		}
	}
	flags["disable-features"] = strings.Join(disabled, ",")
	if len(enabled) > 0 {
		flags["enable-features"] = strings.Join(enabled, ",")
	}
	return flags
}
