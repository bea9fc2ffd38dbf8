import fs from "node:fs"
import net from "node:net"

const LIMIT = 1 << 12 // bytes of what is said
const REPORTED =
  /^(session\.(created|deleted|status|idle|error|compacted)|permission\.(asked|replied)|question\.(asked|replied|rejected))$/
const ASKS = { "permission.asked": "permission", "question.asked": "question" }
const ENDS = /^(permission\.replied|question\.(replied|rejected))$/
const ID = /^ses[\w-]+$/ // of a session of OpenCode 2; its forms may belong to none

// One process may serve several folders, each with a plugin of its own; they share a socket.
const pending = {} // request → what it is, in which session, and the door that takes its answer
const prompted = {} // session → the door of its last prompt, and the agent and model of that
const doors = new Set() // ways into OpenCode: one per folder in OpenCode 1, one in OpenCode 2
const sending = {} // session → how many prompts of ours it is being given
let server
let front // the session that the terminal gave its last prompt to

// OpenCode 1: the routes of its server, which need no port. A prompt goes to the agent and model
// that the last one of its session had.
const routes = (client) => {
  const call = async (url, body) => {
    if (!client._client?.post) return 501
    const headers = { "Content-Type": "application/json" }
    const sent = await client._client.post({ url, body, headers })
    return sent.response?.status ?? 0
  }
  const path = (session) => `/session/${encodeURIComponent(session)}`
  return {
    takes: (what) => what !== "prompt" || !!client._client?.post,
    reply(id, { kind }, reply) {
      const verb = kind === "question" && !reply.answers ? "reject" : "reply"
      return call(`/${kind}/${encodeURIComponent(id)}/${verb}`, reply)
    },
    prompt: (session, text, chosen) =>
      call(`${path(session)}/prompt_async`, { ...chosen, parts: [{ type: "text", text }] }),
    abort: (session) => call(`${path(session)}/abort`, {}),
  }
}
// OpenCode 2: one background service, with a context per folder. Only the context of a request's
// own folder may know the request. No context answers the forms in which it asks questions.
const contexts = new Set()
const folders = {} // session → its folder
const contextOf = (session) =>
  [...contexts].find((ctx) => ctx.location?.directory === folders[session]) ?? [...contexts][0]
const service = {
  takes(what, session) {
    const { permission, session: sessions } = contextOf(session) ?? {}
    if (what === "permission") return typeof permission?.reply === "function"
    return what === "prompt" && !!sessions?.prompt && !!sessions.interrupt
  },
  async reply(requestID, { asker: sessionID }, { reply, ...more }) {
    // Its versions call the answer `reply` or `decision`.
    const given = { sessionID, requestID, reply, decision: reply, ...more }
    for (const ctx of [contextOf(sessionID), ...contexts])
      try {
        await ctx.permission.reply(given)
        return 200
      } catch (_) {}
    return 404
  },
  async prompt(sessionID, text) {
    await contextOf(sessionID).session.prompt({ sessionID, text })
    return 200
  },
  async abort(sessionID) {
    await contextOf(sessionID).session.interrupt({ sessionID })
    return 200
  },
}

const post = async (id, reply) => {
  const asked = pending[id]
  if (!asked) return { status: 404 }
  if (!asked.door.takes(asked.kind, asked.asker)) return { status: 501 }
  if (!reply) return { status: 200 }
  return { status: await asked.door.reply(id, asked, reply) }
}
const order = async (session, given) => {
  const { door, ...chosen } = prompted[session] ?? {}
  if (!door) return { status: 404 }
  if (Object.values(pending).some((each) => each.session === session)) return { status: 409 }
  if (!door.takes("prompt", session)) return { status: 501 }
  if (!given) return { status: 200 }
  if (given.abort) return { status: await door.abort(session) }
  sending[session] = (sending[session] ?? 0) + 1
  return { status: await door.prompt(session, given.prompt, chosen) }
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
const leave = (door) => {
  for (const known of [pending, prompted])
    for (const id of Object.keys(known)) if (known[id].door === door) delete known[id]
  shut(door)
}
const shut = (door) => {
  doors.delete(door)
  if (doors.size) return
  server?.close() // removes the socket
  server = undefined
}

// What is known of the sessions that come in by one door, and the reports of it.
const follow = (door, folder) => {
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
    const about = { type, directory: folder(session), ...(parent && { parent }) }
    const said = { ...about, ...first, properties }
    // What asks is reported whole: what was cut cannot be answered from afar.
    const told = report("opencode", process.pid, type, said, ASKS[type] ? null : cut)
    return told.then((isWritten) => {
      if (isWritten && doors.has(door)) return attend() // its folder is there, and responds
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
    const asker = properties.sessionID
    const session = parents[asker] ?? asker
    if (ASKS[type])
      pending[id] = { kind: ASKS[type], session, asker, door, asked: JSON.stringify(properties) }
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
  const entering = (session, text, chosen) => {
    prompted[session] = { door, ...chosen }
    if (sending[session]) sending[session] -= 1
    else if (!parents[session]) front = session
    entered[session] = text
  }
  // All turns end, and nothing else says so: the process may go on, as after /connect.
  const close = () => {
    leave(door)
    for (const sessionID of Object.keys(latest).reverse()) // subagents before who started them
      if (latest[sessionID] !== "idle") {
        answered[sessionID] = false
        heard({ type: "session.idle", properties: { sessionID } })
      }
    return say("dispose", {})
  }
  return { parents, entered, answered, tasks, say, heard, end, entering, close }
}
const guarded = (work) => async (input, output) => {
  try {
    await work(input, output)
  } catch (_) {}
}

let isOld = false // whether this is OpenCode 1
export const Bellboard = async ({ client, directory }) => {
  const door = routes(client)
  const known = follow(door, () => directory)
  const { parents, answered, tasks, say, heard, end, entering, close } = known
  isOld = true
  doors.add(door)
  return {
    event: guarded(({ event }) => heard(event)),
    "chat.message": guarded((input, output) => {
      const { agent, model, variant } = output?.message ?? {}
      const typed = (output?.parts ?? []).filter((part) => !part.synthetic) // not files it names
      const text = typed.map((part) => part.text ?? "").join(" ")
      entering(input.sessionID, text, { agent, model, variant })
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
    dispose: guarded(close),
  }
}

// OpenCode 2 reports the same in other words, here put into those of OpenCode 1.  That follows its
// documentation and what others recorded of 2.0: no version of it was run.
const translating = () => {
  const known = follow(service, (session) => folders[session])
  const { parents, entered, answered, say, heard, end, entering } = known
  const runs = {} // session → whether its execution has worked: to undo a message is one, too
  const calls = new Map() // call of a tool → the tool, its input, the subagent that it started

  const hear = (type, sessionID, more) => heard({ type, properties: { sessionID, ...more } })
  const works = (sessionID) => {
    runs[sessionID] = true
    hear("session.status", sessionID, { status: { type: "busy" } })
  }
  const rests = (sessionID, isAnswered, error) => {
    if (error && !runs[sessionID]) works(sessionID) // it has failed before
    const hasWorked = runs[sessionID]
    delete runs[sessionID]
    for (const key of calls.keys()) if (key.startsWith(`${sessionID} `)) calls.delete(key)
    for (const id of Object.keys(pending)) if (pending[id].asker === sessionID) delete pending[id]
    if (hasWorked === false) return
    answered[sessionID] = isAnswered
    const failed = { name: error?.type, data: { message: error?.message } }
    if (error) hear("session.error", sessionID, { error: failed })
    hear("session.idle", sessionID)
  }
  const keyOf = (sessionID, call) => `${sessionID} ${call?.callID ?? call?.id}`
  const ended = (data) => {
    const { tool, agent } = calls.get(keyOf(data.sessionID, data)) ?? {}
    calls.delete(keyOf(data.sessionID, data))
    const left = runs[agent] && { background: true, sessionId: agent }
    end({ sessionID: data.sessionID, tool, callID: data.callID ?? data.id }, left)
  }
  const asks = (field) => {
    const { key, title, description, options, type, custom } = field ?? {}
    const offered = Array.isArray(options) ? options : type === "boolean" ? ["Yes", "No"] : []
    return {
      question: `${description ?? title ?? key}`,
      header: `${title ?? ""}`,
      options: offered.map((each) => ({ label: `${each?.label ?? each?.value ?? each}` })),
      multiple: type === "multiselect",
      custom: custom !== false,
    }
  }
  const TOLD = {
    "session.created": ({ sessionID, parentID }) => {
      const info = { id: sessionID, parentID, directory: folders[sessionID] }
      hear("session.created", sessionID, { info })
    },
    "session.deleted": ({ sessionID }) => {
      hear("session.deleted", sessionID)
      delete folders[sessionID]
    },
    "session.inbox.enqueued": ({ sessionID, item }) => {
      if (item?.type !== "user") return
      entering(sessionID, `${item.payload?.text ?? ""}`)
      if (runs[sessionID] === false) works(sessionID)
    },
    "session.inbox.delivered": ({ sessionID }) => works(sessionID),
    "session.execution.started": ({ sessionID }) => {
      runs[sessionID] ??= false
      if (entered[sessionID] !== undefined) works(sessionID)
    },
    "session.step.started": ({ sessionID }) => {
      if (!runs[sessionID]) works(sessionID)
      else say("session.status", { sessionID, status: { type: "busy" } })
    },
    "session.retry.scheduled": ({ sessionID, error }) =>
      hear("session.status", sessionID, { status: { type: "retry", message: error?.message } }),
    "session.execution.succeeded": ({ sessionID }) => rests(sessionID, true),
    "session.execution.failed": ({ sessionID, error }) => rests(sessionID, false, error ?? {}),
    "session.execution.interrupted": ({ sessionID, reason }) => {
      if (reason !== "superseded") rests(sessionID, false) // else another one goes on
    },
    "session.compaction.ended": ({ sessionID }) => hear("session.compacted", sessionID),
    "session.tool.input.started": (data) =>
      calls.set(keyOf(data.sessionID, data), { tool: data.name, args: {} }),
    "session.tool.called": (data) => {
      const { sessionID, input: args = {} } = data
      const tool = data.tool ?? calls.get(keyOf(sessionID, data))?.tool
      calls.set(keyOf(sessionID, data), { tool, args })
      say("tool.execute.before", { sessionID, tool, callID: data.callID ?? data.id, args })
    },
    "session.tool.progress": (data) => {
      const call = calls.get(keyOf(data.sessionID, data))
      if (call) call.agent = data.metadata?.sessionID
    },
    "session.tool.success": ended,
    "session.tool.failed": ended,
    "permission.asked": ({ id, sessionID, action, resources, save, metadata, source, message }) => {
      // It asks for a call of a tool, whose input says more than its resources.
      const { args } = calls.get(keyOf(sessionID, source)) ?? {}
      const about = { ...args, ...metadata, ...(message && { message }) }
      const asked = { permission: action, patterns: resources, metadata: about, save }
      hear("permission.asked", sessionID, { id, ...asked })
    },
    // After a refusal it goes on, or its execution ends, which is reported.
    "permission.replied": ({ sessionID, requestID }) =>
      hear("permission.replied", sessionID, { requestID }),
    "form.created": ({ id, sessionID, title, fields, url }) => {
      const seen = Array.isArray(fields) ? fields.filter((field) => !field?.hidden) : []
      const questions = seen.length ? seen.map(asks) : [asks({ title: title ?? url })]
      hear("question.asked", sessionID, { id, questions })
    },
    "form.replied": ({ id, sessionID }) => hear("question.replied", sessionID, { requestID: id }),
    "form.cancelled": ({ id, sessionID }) => hear("question.replied", sessionID, { requestID: id }),
  }

  // A session that was begun earlier: only its creation named its folder and its parent.
  const meet = async (ctx, { sessionID, parentID, location }, place) => {
    if (folders[sessionID] !== undefined) return
    folders[sessionID] = (location ?? place ?? ctx.location)?.directory ?? ""
    let found = { parentID, location }
    if (!location && ctx.session?.get) {
      const late = new Promise((done) => setTimeout(done, 1000).unref())
      found = (await Promise.race([ctx.session.get({ sessionID }), late]).catch(() => {})) ?? found
    }
    folders[sessionID] = found.location?.directory ?? folders[sessionID]
    if (!ID.test(found.parentID)) return
    await meet(ctx, { sessionID: found.parentID }, place)
    parents[sessionID] = parents[found.parentID] ?? found.parentID
  }
  const told = new Set() // ids of the last events: each folder's plugin hears those of all
  let telling = Promise.resolve() // in order, although there are several streams
  const tell = (ctx, { id, type, data, location }) => {
    const about = type === "form.created" ? data?.form : data
    if (!Object.hasOwn(TOLD, type) || !ID.test(about?.sessionID) || told.has(id)) return
    if (id) told.add(id)
    if (told.size > 1000) told.delete(told.values().next().value)
    const say = guarded(() => meet(ctx, about, location).then(() => TOLD[type](about)))
    telling = telling.then(say)
  }
  return tell
}
let tell
const setup = async (ctx) => {
  try {
    // OpenCode 1 calls this as well, after `server`, with a context that has no events.
    if (isOld || typeof ctx.event.subscribe !== "function") return
    const end = new AbortController()
    contexts.add(ctx)
    doors.add(service)
    tell ??= translating()
    if (Object.keys(pending).length) attend()
    guarded(async () => {
      for await (const event of ctx.event.subscribe({ signal: end.signal })) {
        if (end.signal.aborted) return
        if (event) tell(ctx, event)
      }
    })()
    // Its turns go on: a plugin ends when a file of its folder changes, and begins again.
    return () => {
      end.abort()
      contexts.delete(ctx)
      if (!contexts.size) shut(service)
    }
  } catch (_) {}
}

export default { id: "bellboard", server: Bellboard, setup }
