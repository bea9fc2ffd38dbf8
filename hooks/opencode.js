// bellboard's plugin for OpenCode: reports what a session does, and takes answers to what it asks.
//
// It writes nothing itself: each report is one run of `emit`, in order. While something is asked, it
// listens on a socket in bellboard's state folder, which only its owner can enter; whoever connects
// can give an answer to exactly that. It never throws: an error here must not reach OpenCode.
import { spawn } from "node:child_process"
import fs from "node:fs"
import net from "node:net"

const LONGEST = 4000 // characters of a text to report
const LIMIT = 1 << 17 // bytes of an answer
const LINGER = 3000 // milliseconds in which late answers are refused as late
const REPORTED =
  /^(session\.(created|deleted|status|idle|error|compacted)|permission\.(asked|replied)|question\.(asked|replied|rejected))$/
const ASKS = { "permission.asked": "permission", "question.asked": "question" }
const ENDS = /^(permission\.replied|question\.(replied|rejected))$/

const state =
  process.env.BELLBOARD_HOME ||
  (process.env.XDG_STATE_HOME || `${process.env.HOME}/.local/state`) + "/bellboard"

export const Bellboard = async ({ client, directory }) => {
  const parents = {} // session of a subagent → the session that started it
  const pending = {} // request → what it is
  const answered = {} // session → whether the model has answered its prompt to the end
  let queue = Promise.resolve()
  let server, leaving

  const run = (type, properties) =>
    new Promise((done) => {
      const name = type.replace(/^tool/, "Tool").replace(/\W/g, "_")
      const emit = spawn(`${state}/emit`, [name, String(process.pid), "opencode"], {
        stdio: ["pipe", "ignore", "ignore"],
      })
      emit.on("error", done)
      emit.on("close", done)
      emit.stdin.on("error", () => {})
      const parent = parents[properties.sessionID]
      emit.stdin.end(JSON.stringify({ type, properties, directory, ...(parent && { parent }) }))
    })
  const report = (type, properties) => {
    queue = queue.then(() => run(type, properties)).catch(() => {})
    return queue
  }

  const post = async (id, reply) => {
    const kind = pending[id]
    if (!kind) return { status: 404 }
    if (!reply) return { status: 200 }
    if (!client._client?.post) return { status: 501 }
    const verb = kind === "question" && !reply.answers ? "reject" : "reply"
    const sent = await client._client.post({
      url: `/${kind}/${encodeURIComponent(id)}/${verb}`,
      body: reply,
      headers: { "Content-Type": "application/json" },
    })
    return { status: sent.response?.status ?? 0 }
  }
  const serve = (connection) => {
    let text = ""
    connection.setTimeout(3000, () => connection.destroy())
    connection.on("error", () => {})
    connection.setEncoding("utf8")
    connection.on("data", async (piece) => {
      text += piece
      if (text.length > LIMIT) return connection.destroy()
      if (!text.includes("\n")) return
      connection.pause()
      let said = { status: 400 }
      try {
        const { request, reply } = JSON.parse(text.slice(0, text.indexOf("\n")))
        said = await post(String(request), reply)
      } catch (_) {}
      connection.end(JSON.stringify(said) + "\n")
    })
  }
  const isOurs = (path) => {
    const found = fs.lstatSync(path)
    return found.isDirectory() && found.uid === process.getuid()
  }
  const listen = () => {
    clearTimeout(leaving)
    if (server || !isOurs(state)) return
    const folder = `${state}/opencode`
    if (!fs.existsSync(folder)) fs.mkdirSync(folder, { mode: 0o700 })
    if (!isOurs(folder) || fs.lstatSync(folder).mode & 0o077) return
    const path = `${folder}/${process.pid}`
    fs.rmSync(path, { force: true }) // of a dead process that had this id
    server = net.createServer(serve)
    server.on("error", () => (server = undefined))
    server.listen(path)
    server.unref()
  }
  const close = () => {
    server?.close() // removes the socket
    server = undefined
  }

  const heard = ({ type, properties }) => {
    const id = properties.requestID ?? properties.id
    if (type === "session.created" && properties.info?.parentID)
      parents[properties.sessionID ?? properties.info.id] = properties.info.parentID
    if (ASKS[type]) {
      pending[id] = ASKS[type]
      listen()
    } else if (ENDS.test(type)) {
      delete pending[id]
      if (!Object.keys(pending).length) leaving = setTimeout(close, LINGER).unref()
    }
    const said = (type === "message.updated" && properties.info) || {}
    if (said.role === "assistant" && said.time?.completed)
      answered[said.sessionID] = !said.error && said.finish !== "tool-calls"
    if (type === "session.idle" && !parents[properties.sessionID])
      report(type, { ...properties, answered: answered[properties.sessionID] })
    else if (REPORTED.test(type)) report(type, properties)
  }
  const guarded = (work) => async (input, output) => {
    try {
      await work(input, output)
    } catch (_) {}
  }
  const cut = (_, value) =>
    typeof value === "string" && value.length > LONGEST ? value.slice(0, LONGEST) + "…" : value

  return {
    event: guarded(({ event }) => heard(event)),
    "chat.message": guarded((input, output) => {
      const text = (output?.parts ?? []).map((part) => part.text ?? "").join(" ")
      answered[input.sessionID] = false
      report("chat.message", { sessionID: input.sessionID, text: text.slice(0, LONGEST) })
    }),
    "tool.execute.before": guarded(({ sessionID, tool, callID }, output) => {
      const args = JSON.parse(JSON.stringify(output?.args ?? {}, cut))
      report("tool.execute.before", { sessionID, tool, callID, args })
    }),
    "tool.execute.after": guarded(({ sessionID, tool, callID }) =>
      report("tool.execute.after", { sessionID, tool, callID }),
    ),
    dispose: guarded(() => {
      close()
      return report("dispose", {})
    }),
  }
}
