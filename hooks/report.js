//
// It writes nothing itself: each report is one run of `emit`, in order.  It never throws: an error
// here must not reach the agent.
import { spawn } from "node:child_process"
import fs from "node:fs"

const LONGEST = 4000 // characters of a text to report
const PATIENCE = 5000 // milliseconds for a report: a slow disk takes two, a dead mount never ends
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
    const late = setTimeout(() => {
      emit.kill("SIGKILL")
      done() // now: on a dead mount it may outlive that
    }, PATIENCE).unref()
    const end = () => {
      clearTimeout(late)
      done()
    }
    emit.on("error", end)
    emit.on("close", end)
    emit.stdin.on("error", () => {})
    emit.stdin.end(payload)
    for (const each of [emit, emit.stdin]) each.unref?.()
  })
// Until it has told, or for that long, this keeps an agent from ending, and one that waits from
// going on; nothing else does.
const inTime = (told) =>
  new Promise((done) => {
    const late = setTimeout(done, PATIENCE)
    told.then(() => {
      clearTimeout(late)
      done()
    })
  })
const report = (agent, pid, event, said, shorten = cut) => {
  const payload = JSON.stringify(said, shorten) // now: it may change while others are reported
  queue = queue.then(() => run(agent, pid, event, payload)).catch(() => {})
  return inTime(queue)
}
