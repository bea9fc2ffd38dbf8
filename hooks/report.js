//
// It writes nothing itself: each report is one run of `emit`, in order.  It never throws: an error
// here must not reach the agent.
import { spawn } from "node:child_process"

const LONGEST = 4000 // characters of a text to report
const PATIENCE = 4000 // milliseconds for a report: a slow disk takes two, a dead mount never ends
const HOLD = 5000 // milliseconds without progress after which nobody waits for reports any more
// Not one of another user; its mode may be lost, or its disk mounted without programs.
const MINE = '[ -O "$0" ] && exec /bin/sh "$0" "$@"'
const xdg = process.env.XDG_STATE_HOME
const state =
  process.env.BELLBOARD_HOME ||
  (xdg?.startsWith("/") ? xdg : `${process.env.HOME}/.local/state`) + "/bellboard"
const holds = new Set() // timers of those that wait for a report
let queue = Promise.resolve()

const cut = (_, value) =>
  typeof value === "string" && value.length > LONGEST
    ? value.slice(0, LONGEST).replace(/[\ud800-\udbff]$/, "") + "…" // not half a character
    : value
const run = (agent, pid, event, payload) =>
  new Promise((done) => {
    const name = event.replace(/^tool/, "Tool").replace(/\W/g, "_")
    const script = `${state}/emit`
    if (!script.startsWith("/")) return done() // not one of the current folder
    // Looked at and started by a shell: on a dead mount, both would hold the agent up.
    const emit = spawn("/bin/sh", ["-c", MINE, script, name, String(pid), agent], {
      stdio: ["pipe", "ignore", "ignore"],
    })
    const end = (code) => {
      clearTimeout(late)
      if (!emit.killed) for (const hold of holds) hold.refresh() // the next one has as long
      done(code === 0)
    }
    const late = setTimeout(() => {
      emit.kill("SIGKILL")
      end() // now: on a dead mount it may outlive that
    }, PATIENCE).unref()
    emit.on("error", end)
    emit.on("close", end)
    emit.stdin.on("error", () => {})
    emit.stdin.end(payload)
    for (const each of [emit, emit.stdin]) each.unref?.()
  })
// While reports make progress, an agent does not end before its last one was told, and one that
// waits for that does not go on.  It hears whether that report's `emit` ran to its end.
const inTime = (told) =>
  new Promise((done) => {
    const end = (isWritten) => {
      clearTimeout(hold)
      holds.delete(hold)
      done(isWritten)
    }
    const hold = setTimeout(end, HOLD)
    holds.add(hold)
    told.then(end)
  })
const report = (agent, pid, event, said, shorten = cut) => {
  const payload = JSON.stringify(said, shorten) // now: it may change while others are reported
  queue = queue.then(() => run(agent, pid, event, payload)).catch(() => {})
  return inTime(queue)
}
