# shellcheck shell=sh
# shellcheck disable=SC2154 # failures and work come from expect.sh
# A headless Chromium for tests of pages, driven over WebDriver's plain HTTP. Sourced after expect.sh.
# Exits with 77, which CTest counts as skipped, where there is no browser.
for program in chromium chromedriver curl; do
  command -v $program >/dev/null 2>&1 || { echo "$program is not installed: skipped (make check-browser installs it)"; exit 77; }
done

browser_start() {
  [ "$failures" = 0 ] || exit 1 # without pages there is nothing to look at
  : >"$work/driver.log"
  chromedriver --port=0 >"$work/driver.log" 2>&1 &
  driver=$!
  trap 'browser_stop; rm -rf "$work"' EXIT
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    port=$(sed -n 's/.*started successfully on port \([0-9]*\).*/\1/p' "$work/driver.log")
    [ -z "$port" ] || break
    sleep 0.25
  done
  [ -n "$port" ] || { cat "$work/driver.log"; echo "chromedriver does not start" >&2; exit 1; }
  arguments='"--headless","--no-sandbox","--disable-gpu","--disable-quic","--no-first-run","--hide-scrollbars",
    "--disable-background-networking","--disable-component-update","--disable-sync","--window-size=1240,1000",
    "--force-device-scale-factor=1","--user-data-dir='$work'/browser"'
  answer=$(curl -s "http://127.0.0.1:$port/session" -d '{"capabilities":{"alwaysMatch":{"browserName":"chrome",
    "goog:chromeOptions":{"args":['"$arguments"']},"goog:loggingPrefs":{"browser":"ALL","performance":"ALL"}}}}')
  session=$(printf '%s' "$answer" | sed -n 's/.*"sessionId":"\([^"]*\)".*/\1/p')
  [ -n "$session" ] || { echo "no session: $answer" >&2; exit 1; }
  send url '{"url":"about:blank"}' >/dev/null # what the browser's own first page asks for is not ours
  send se/log '{"type":"performance"}' >/dev/null
}

browser_stop() {
  [ -z "${session:-}" ] || curl -s -X DELETE "http://127.0.0.1:$port/session/$session" >/dev/null || true
  kill "$driver" 2>/dev/null || true
  wait "$driver" 2>/dev/null || true
}

# send PATH JSON: a command of WebDriver; prints the answer.
send() { curl -s -H Expect: "http://127.0.0.1:$port/session/$session/$1" -d "$2"; }

open_page() { send url '{"url":"file://'"$1"'"}' >/dev/null; }

# js 'return ...': runs a script in the page; prints what it returns, a string without its quotes.
js() {
  script=$(printf '%s' "$1" | sed 's/\\/\\\\/g; s/"/\\"/g' | tr '\n' ' ')
  send execute/sync '{"script":"'"$script"'","args":[]}' | sed 's/^{"value"://; s/}$//; s/^"\(.*\)"$/\1/'
}

# same WANTED 'return ...': what the script returns must be WANTED.
same() {
  got=$(js "$2")
  [ "$got" = "$1" ] || complain "wanted $1, got $(printf '%s' "$got" | head -c 300) from: $2"
}

# The middle of an element, as "x,y" of the window; it is scrolled into view first.
middle_of() { js "const e = $1; e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect(); return Math.round(b.left + b.width / 2) + ',' + Math.round(b.top + b.height / 2)"; }

# pointer ACTIONS: a list of pointer actions, such as move X Y, down, up.
pointer() {
  list=""
  while [ $# -gt 0 ]; do
    case $1 in
      move) item='{"type":"pointerMove","duration":50,"x":'$2',"y":'$3'}'; shift 3 ;;
      down) item='{"type":"pointerDown","button":0}'; shift ;;
      up) item='{"type":"pointerUp","button":0}'; shift ;;
    esac
    list="$list${list:+,}$item"
  done
  send actions '{"actions":[{"type":"pointer","id":"mouse","parameters":{"pointerType":"mouse"},"actions":['"$list"']}]}' >/dev/null
}

press() { send actions '{"actions":[{"type":"key","id":"keys","actions":[{"type":"keyDown","value":"'"$1"'"},{"type":"keyUp","value":"'"$1"'"}]}]}' >/dev/null; }

# Keeps a picture of the window where SCREENSHOTS names a folder.
picture() {
  [ -n "${SCREENSHOTS:-}" ] || return 0
  curl -s "http://127.0.0.1:$port/session/$session/screenshot" | sed 's/^{"value":"//; s/"}$//' | base64 -d >"$SCREENSHOTS/$1.png"
}

# Nothing on the console, and nothing asked of any network. Both logs are emptied by reading.
quiet() {
  send se/log '{"type":"browser"}' >"$work/console"
  grep -q '"value":\[\]' "$work/console" || complain "$1: the console has $(head -c 600 "$work/console")"
  send se/log '{"type":"performance"}' | tr '{' '\n' | grep -o '\\"url\\":\\"[a-z]*:[^\\]*' | grep -v 'file:\|data:\|about:\|chrome' >"$work/requests" || true
  [ ! -s "$work/requests" ] || complain "$1: the page asked for $(head -3 "$work/requests")"
}
