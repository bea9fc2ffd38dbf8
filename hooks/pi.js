export default (pi) => {
  const on = (event, say = () => ({})) =>
    pi.on(event, async (given, ctx) => {
      try {
        const file = ctx.sessionManager.getSessionFile()
        const about = { event, session: ctx.sessionManager.getSessionId(), file, cwd: ctx.cwd }
        const told = report("pi", process.pid, event, { ...about, ...say(given) })
        if (event === "session_shutdown") await told // the process ends right after it
      } catch (_) {}
    })
  const reason = ({ reason }) => ({ reason })

  on("session_start", reason)
  on("session_shutdown", reason)
  on("before_agent_start", ({ prompt }) => ({ prompt }))
  on("agent_start")
  on("agent_end", ({ messages }) => {
    const last = messages.findLast(({ role }) => role === "assistant") ?? {}
    const { stopReason, errorMessage, content } = last
    const text = (content ?? []).map((part) => part.text ?? "").join("")
    return { stopReason, errorMessage, text }
  })
  on("tool_execution_start", ({ toolName, toolCallId, args }) => ({ toolName, toolCallId, args }))
  on("tool_execution_end", ({ toolName, toolCallId }) => ({ toolName, toolCallId }))
  on("session_before_compact")
  on("session_compact")
}
