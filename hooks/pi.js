export default (pi) => {
  let last = {} // how the last run of the model ended; after an error, Pi may try again
  let asked = 0 // when its last question began, one at a time
  const failed = () => last.stopReason === "error"
  const on = (event, say = () => ({})) =>
    pi.on(event, async (given, ctx) => {
      try {
        const said = say(given, ctx)
        if (!said) return
        const file = ctx.sessionManager.getSessionFile()
        const about = { event, session: ctx.sessionManager.getSessionId(), file, cwd: ctx.cwd }
        const told = report("pi", process.pid, event, { ...about, ...said })
        if (event === "session_shutdown") await told // the process ends right after it
      } catch (_) {}
    })
  const reason = ({ reason }) => ({ reason })
  // Of other extensions; one at rest was opened by the user, and a custom one may ask nothing.
  const question = ({ kind, title }, ctx) =>
    kind !== "custom" && !ctx.isIdle() && { title, toolName: "question", toolCallId: `${asked}` }

  on("session_start", reason)
  on("session_shutdown", reason)
  on("before_agent_start", ({ prompt }) => {
    last = {}
    return { prompt }
  })
  on("agent_start", () => !failed() && {})
  on("message_update", () => failed() && (last = {})) // only the first one after an error
  on("agent_end", ({ messages }) => {
    const said = messages.findLast(({ role }) => role === "assistant") ?? {}
    const { stopReason, errorMessage, content } = said
    const text = (content ?? []).map((part) => part.text ?? "").join("")
    last = { stopReason, errorMessage, text }
    return failed() && last
  })
  on("agent_settled", ({ aborted }) => ({ ...last, ...(aborted && { stopReason: "aborted" }) }))
  on("tool_execution_start", ({ toolName, toolCallId, args }) => ({ toolName, toolCallId, args }))
  on("tool_execution_end", ({ toolName, toolCallId }) => ({ toolName, toolCallId }))
  on("ui_prompt_start", (...given) => {
    asked = Date.now()
    return question(...given)
  })
  on("ui_prompt_end", question)
  on("session_before_compact")
  on("session_compact")
  on("session_compact_failed")
}
