package browser

import (
	"fmt"
	"strings"
	"time"
)

// InsecureHost is a host name that leads to this machine, in an origin that is no secure context: there
// navigator.locks, navigator.storage and crypto.randomUUID do not exist.
const InsecureHost = "insecure.test"

// Options of a browser. The zero value runs every tab at full speed, hidden or not.
type Options struct {
	// Throttling leaves Chromium's slowing of hidden tabs in force, as people have it: page timers run once a
	// second at once, and chained ones once a minute some seconds after Grace.
	Throttling bool

	// Grace is how long a tab is hidden before intensive throttling (one wake-up a minute) begins, in whole
	// seconds. 0 means Chromium's own: five minutes, or one for a page that has finished loading.
	Grace time.Duration

	// Shell runs Chromium's headless shell where one is installed: the same engine without the browser around it, here
	// with the first of its two compilers of Wasm alone, for little more than half of the processor time. It hides no
	// tab, keeps no page in the back/forward cache, gives the focus to one tab only, and a trap in Wasm ends its renderer.
	Shell bool

	// Flags are further command line switches, "name" or "name=value", without the dashes. They override the
	// harness's own, except enable-features and disable-features, which are added to them.
	Flags []string
}

// flags returns the command line. Nothing here slows or speeds a hidden tab where Throttling is on.
func (o Options) flags() map[string]any {
	flags := map[string]any{
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
	// A renderer for each tab: no sharing among pages of one site. No upgrade of the insecure origin to https.
	disabled := []string{"ProcessPerSiteUpToMainFrameThreshold", "Translate", "HttpsUpgrades",
		"HttpsFirstBalancedModeAutoEnable", "OptimizationHints", "MediaRouter", "DialMediaRouteProvider",
		"WebUIOmniboxPopup", "WebUIOmniboxAimPopup"} // a page of the address bar, rendered in every browser
	var enabled []string
	if o.Shell {
		flags["js-flags"] = "--liftoff-only"
	}
	if o.Throttling {
		if o.Grace > 0 {
			// Two features share the work: the second holds for pages that have finished loading.
			n := max(1, int(o.Grace/time.Second))
			enabled = append(enabled,
				fmt.Sprintf("IntensiveWakeUpThrottling:grace_period_seconds/%d", n),
				fmt.Sprintf("QuickIntensiveWakeUpThrottlingAfterLoading:grace_period_seconds_loaded/%d", n))
		}
	} else {
		flags["disable-background-timer-throttling"] = true
		flags["disable-backgrounding-occluded-windows"] = true
		flags["disable-renderer-backgrounding"] = true
	}
	for _, flag := range o.Flags {
		name, value, valued := strings.Cut(strings.TrimLeft(flag, "-"), "=")
		switch {
		case name == "enable-features":
			enabled = append(enabled, value)
		case name == "disable-features":
			disabled = append(disabled, value)
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
