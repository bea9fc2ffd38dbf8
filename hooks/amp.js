export default (amp) => {
  // Amp may run plugins in a process of their own, which has no terminal.
  const pid = process.stdin.isTTY ? process.pid : process.ppid
  const say = (event, said) => report("amp", pid, event, { event, ...said })
  const followed = {} // thread → what is known of it, once its state is followed

  const follow = async (thread) => {
    const parent = await thread.parentThreadID().catch(() => null)
    const root = (await followed[parent])?.thread ?? parent // a subagent may have its own
    const about = root ? { thread: root, agent: thread.id } : { thread: thread.id }
    about.cwd = process.cwd()
    let was
    thread.state.subscribe((state) => {
      if (state !== was) say("thread.state", { ...about, state, was })
      was = state
    })
    return about
  }
  const tell = async (event, thread, said) => {
    try {
      const about = await (followed[thread.id] ??= follow(thread))
      say(event, { ...about, ...said })
    } catch (_) {}
  }
  // Nothing is returned: Amp does not wait for a report, and goes on as it would.
  amp.on("session.start", (_, { thread }) => void tell("session.start", thread))
  amp.on("agent.start", ({ message }, { thread }) => void tell("agent.start", thread, { message }))
  amp.on("agent.end", ({ status }, { thread }) => void tell("agent.end", thread, { status }))
}
