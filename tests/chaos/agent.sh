#!/bin/sh
# An agent that costs a millisecond: it speaks the demo agent's language and does what is not done yet, so that a session
# that was cut anywhere ends with the same files. Started as the demo agent is: -m MODULE --session-id ID, prompt on stdin;
# with --resume PAST --ask behind it, it only says what the next agent must know.
#
#   CHAOS_LOG    says what this agent has done, outside the repository: the witness of what may not be lost
#   CHAOS_LOCK   held while an agent lives: a second one at the same time is a doubled leg
#   CHAOS_ENDS   how the first leg ends: "limit" says it and goes, "stays" says nothing and waits to be ended
id=$4
transcript=$RELAY_DEMO_HOME/sessions/$id.jsonl
mkdir -p "$RELAY_DEMO_HOME/sessions"

note() { echo "{\"demo\":true,\"at\":\"2026-01-02T03:04:05.000+00:00\",$1}" >>"$transcript"; }
tell() { echo "{\"demo\":true,$1}"; }
witness() { echo "$*" >>"$CHAOS_LOG"; }
has() { git log --format=%s | grep -qx "$1"; }
fail() { note '"type":"end","ok":false'; tell '"type":"end","ok":false'; exit 1; }

exec 9>>"$CHAOS_LOCK"
flock -n 9 || witness "DOUBLED leg $RELAY_LEG"
if [ "$7" = --ask ]; then
	witness "leg $RELAY_LEG is asked"
	cat "$RELAY_DEMO_HOME/sessions/$6.jsonl" >>"$transcript"
	note '"type":"say","text":"{\"constraints\": [\"Keep made.txt\"]}"'
	note '"type":"end","ok":true'
	tell '"type":"end","ok":true'
	exit
fi
witness "leg $RELAY_LEG begins"
note "\"type\":\"session\",\"id\":\"$id\",\"cwd\":\"$PWD\""
tell "\"type\":\"session\",\"id\":\"$id\""
note '"type":"say","text":"I begin."'
if ! has 'Make it'; then
	echo made >made.txt && git add made.txt && git commit -q --allow-empty -m 'Make it' || fail
	witness made
fi
if [ "$RELAY_LEG" = 1 ]; then
	echo "half by $id" >half.txt || fail
	witness "half by $id"
	if [ "$CHAOS_ENDS" = stays ]; then
		note '"type":"say","text":"I wait."'
		spool=$RELAY_DIR/spool/$RELAY_SESSION
		echo '{"kind": "handoff", "to": "", "reason": "asked in the test"}' >"$spool/request.json" || fail
		while :; do sleep 600; done
	fi
	note '"type":"limit","pretend":true,"resetsAt":4102444800'
	tell '"type":"limit","pretend":true,"resetsAt":4102444800'
	fail
fi
if ! has 'Finish it'; then
	grep -qsx whole half.txt || echo whole >>half.txt || fail
	git add half.txt && git commit -q --allow-empty -m 'Finish it' || fail
	witness finished
fi
note '"type":"end","ok":true'
tell '"type":"end","ok":true'
