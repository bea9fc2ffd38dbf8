import fs from "node:fs"
import net from "node:net"

const LIMIT = 1 << 12 // bytes of what is said
const REPORTED =
  /^(session\.(created|deleted|status|idle|error|compacted)|permission\.(asked|replied)|question\.(asked|replied|rejected))$/
const ASKS = { "permission.asked": "permission", "question.asked": "question" }
const ENDS = /^(permission\.replied|question\.(replied|rejected))$/

// One process may serve several folders, each with a plugin of its own; they share a socket.
const pending = {} // request → what it is, in which session, and the client that takes its answer
const prompted = {} // session → the client of its last prompt, and the agent and model of that
const clients = new Set()
const sending = {} // session → how many prompts of ours it is being given
let server
let front // the session that the terminal gave its last prompt to

const call = async (client, url, body) => {
  if (!client._client?.post) return { status: 501 }
  const headers = { "Content-Type": "application/json" }
  const sent = await client._client.post({ url, body, headers })
  return { status: sent.response?.status ?? 0 }
}
const post = async (id, reply) => {
  const { kind, client } = pending[id] ?? {}
  if (!kind) return { status: 404 }
  if (!reply) return { status: 200 }
  const verb = kind === "question" && !reply.answers ? "reject" : "reply"
  return call(client, `/${kind}/${encodeURIComponent(id)}/${verb}`, reply)
}
// A prompt goes to the agent and model that the last one of its session had.
const order = async (session, given) => {
  const { client, ...chosen } = prompted[session] ?? {}
  if (!client) return { status: 404 }
  if (Object.values(pending).some((each) => each.session === session)) return { status: 409 }
  if (!given) return { status: client._client?.post ? 200 : 501 }
  const path = `/session/${encodeURIComponent(session)}`
  if (given.abort) return call(client, `${path}/abort`, {})
  const parts = [{ type: "text", text: given.prompt }]
  sending[session] = (sending[session] ?? 0) + 1
  return call(client, `${path}/prompt_async`, { ...chosen, parts })
}
// Anything of ours that sees the socket may connect to it, even where it is mounted read-only, as in a
// sandbox. So an answer is in a file that a host wrote, and is for exactly what was asked; a prompt, and
// an order to abort, for the session that it names.
const written = (serial, isFor) => {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = fs.constants
  const path = `${socket()}.${BigInt(serial)}.reply`
  const file = fs.openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  try {
    const found = fs.fstatSync(file)
    if (!found.isFile() || found.uid !== process.getuid()) throw new Error("not ours")
    const said = JSON.parse(fs.readFileSync(file, "utf8"))
    if (!isFor(said)) throw new Error("for another request")
    return said
  } finally {
    fs.closeSync(file)
  }
}
const respond = ({ request, reply, written: serial }) => {
  if (reply) return { status: 501 } // told by an older host, or by anybody
  const isFor = (said) =>
    said.request === request && JSON.stringify(said.asked.properties) === pending[request]?.asked
  return post(request, serial && pending[request] && written(serial, isFor).reply)
}
const obey = async ({ session, written: serial }) => {
  const given = serial && written(serial, (said) => said.session === session)
  return { ...(await order(session, given)), orders: true, front: session === front }
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
      const told = JSON.parse(text.slice(0, text.indexOf("\n")))
      said = { ...(await (told.session ? obey(told) : respond(told))), written: true }
    } catch (_) {}
    connection.end(JSON.stringify(said) + "\n")
  })
}
const socket = () => `${state}/opencode/${process.pid}`
const isOurs = (found) => found.isDirectory() && found.uid === process.getuid()
const attend = () => {
  try {
    listen()
  } catch (_) {} // then there is only no answer, and no prompt, from afar
}
const listen = () => {
  if (server || !state.startsWith("/") || !isOurs(fs.statSync(state))) return // or a link to it
  if (!isOurs(fs.lstatSync(`${state}/spool`))) return // not one that we use
  const folder = `${state}/opencode`
  if (!fs.existsSync(folder)) fs.mkdirSync(folder, { mode: 0o700 })
  const found = fs.lstatSync(folder)
  if (!isOurs(found) || found.mode & 0o077) return
  const path = socket()
  for (const name of fs.readdirSync(folder)) // of a dead process that had this id, or a dead host
    if (name.split(".")[0] === `${process.pid}`) fs.rmSync(`${folder}/${name}`, { force: true })
  server = net.createServer(serve)
  server.on("error", () => (server = undefined))
  server.listen(path)
  server.unref()
}
const leave = (client) => {
  for (const known of [pending, prompted])
    for (const id of Object.keys(known)) if (known[id].client === client) delete known[id]
  clients.delete(client)
  if (clients.size) return
  server?.close() // removes the socket
  server = undefined
}

export const Bellboard = async ({ client, directory }) => {
  clients.add(client)
  const parents = {} // session of a subagent → the session that its terminal shows
  const entered = {} // session → a message that it has not begun to work on
  const answered = {} // session → whether the model has answered its prompt to the end
  const latest = {} // session → its status, if nothing else was reported since
  const tasks = new Set() // calls that run: the copy of a session repeats how earlier ones ended

  const say = (type, properties) => {
    const session = properties.sessionID ?? properties.info?.id
    const status = type === "session.idle" ? "idle" : properties.status?.type
    // It repeats each status a few times, and what is reported next would have to wait.
    if (status && status !== "retry" && status === latest[session]) return
    latest[session] = status
    const parent = parents[session]
    const { id, sessionID, permission } = properties
    // Of what is too large, only the start is read: who asks, under which id.
    const first = ASKS[type] && { id, sessionID, permission }
    const said = { type, directory, ...(parent && { parent }), ...first, properties }
    // What asks is reported whole: what was cut cannot be answered from afar.
    const told = report("opencode", process.pid, type, said, ASKS[type] ? null : cut)
    return told.then((isWritten) => {
      if (isWritten && clients.has(client)) return attend() // its folder is there, and responds
      if (!isWritten && latest[session] === status) delete latest[session] // it is repeated
    })
  }

  // A message is a prompt once its session works on it: others are only added, by plugins as well.
  const begin = (sessionID) => {
    const text = entered[sessionID]
    if (text === undefined) return
    delete entered[sessionID]
    answered[sessionID] = false
    say("chat.message", { sessionID, text })
  }
  const end = ({ sessionID, tool, callID }, metadata) => {
    tasks.delete(callID)
    const spawned = metadata?.background === true ? metadata.sessionId : undefined // it goes on
    return say("tool.execute.after", { sessionID, tool, callID, spawned })
  }
  const heard = ({ type, properties }) => {
    const id = properties.requestID ?? properties.id
    const parent = type === "session.created" && properties.info?.parentID
    if (parent) parents[properties.sessionID ?? properties.info.id] = parents[parent] ?? parent
    const session = parents[properties.sessionID] ?? properties.sessionID
    if (ASKS[type])
      pending[id] = { kind: ASKS[type], session, client, asked: JSON.stringify(properties) }
    else if (ENDS.test(type)) delete pending[id]
    else if (type === "session.deleted") delete prompted[properties.info?.id ?? session]
    const said = (type === "message.updated" && properties.info) || {}
    if (said.role === "assistant" && said.time?.completed)
      // One that was stopped between two tries has neither an error nor a reason to finish.
      answered[said.sessionID] = !said.error && !!said.finish && said.finish !== "tool-calls"
    const part = (type === "message.part.updated" && properties.part) || {}
    if (part.state?.status === "error" && tasks.has(part.callID)) end(part) // it runs no hook
    if (properties.status?.type === "busy") begin(properties.sessionID)
    const isOver = type === "session.idle" || properties.status?.type === "idle"
    if (isOver && !parents[properties.sessionID])
      say(type, { ...properties, answered: answered[properties.sessionID] })
    else if (REPORTED.test(type)) say(type, properties)
    if (ASKS[type]) attend()
  }
  const guarded = (work) => async (input, output) => {
    try {
      await work(input, output)
    } catch (_) {}
  }

  return {
    event: guarded(({ event }) => heard(event)),
    "chat.message": guarded((input, output) => {
      const { agent, model, variant } = output?.message ?? {}
      prompted[input.sessionID] = { client, agent, model, variant }
      if (sending[input.sessionID]) sending[input.sessionID] -= 1
      else if (!parents[input.sessionID]) front = input.sessionID
      const typed = (output?.parts ?? []).filter((part) => !part.synthetic) // not files it names
      entered[input.sessionID] = typed.map((part) => part.text ?? "").join(" ")
    }),
    "tool.execute.before": guarded(({ sessionID, tool, callID }, output) => {
      const args = output?.args ?? {}
      // A subagent of an earlier process goes on; one with a prompt of its own is none.
      if (tool === "task" && args.task_id && !(args.task_id in answered))
        parents[args.task_id] ??= parents[sessionID] ?? sessionID
      if (tool === "task") tasks.add(callID)
      return say("tool.execute.before", { sessionID, tool, callID, args })
    }),
    "tool.execute.after": guarded((input, output) =>
      end(input, input.tool === "task" ? output?.metadata : undefined),
    ),
    dispose: guarded(() => {
      leave(client)
      // All turns end, and nothing else says so: the process may go on, as after /connect.
      for (const sessionID of Object.keys(latest).reverse()) // subagents before who started them
        if (latest[sessionID] !== "idle") {
          answered[sessionID] = false
          heard({ type: "session.idle", properties: { sessionID } })
        }
      return say("dispose", {})
    }),
  }
}
