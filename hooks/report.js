//
// It writes nothing itself: each report is one run of `emit`, in order.  It never throws: an error
// here must not reach the agent.
import { spawn } from "node:child_process"
import fs from "node:fs"

const LONGEST = 4000 // characters of a text to report
const xdg = process.env.XDG_STATE_HOME
const state =
  process.env.BELLBOARD_HOME ||
  (xdg?.startsWith("/") ? xdg : `${process.env.HOME}/.local/state`) + "/bellboard"
let queue = Promise.resolve()

const cut = (_, value) =>
  typeof value === "string" && value.length > LONGEST
    ? value.slice(0, LONGEST).replace(/[\ud800-\udbff]$/, "") + "…" // not half a character
    : value
const run = (agent, pid, event, payload) =>
  new Promise((done) => {
    const name = event.replace(/^tool/, "Tool").replace(/\W/g, "_")
    const script = `${state}/emit`
    // Not one of the current folder, nor of another user.
    if (!script.startsWith("/") || fs.statSync(script).uid !== process.geteuid()) return done()
    const emit = spawn(script, [name, String(pid), agent], {
      stdio: ["pipe", "ignore", "ignore"],
    })
    emit.on("error", done)
    emit.on("close", done)
    emit.stdin.on("error", () => {})
    emit.stdin.end(payload)
  })
const report = (agent, pid, event, said, shorten = cut) => {
  const payload = JSON.stringify(said, shorten) // now: it may change while others are reported
  queue = queue.then(() => run(agent, pid, event, payload)).catch(() => {})
  return queue
}
