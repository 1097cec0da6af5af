// eirkit guard for opencode: stores what a session works with before a compaction, and adds to the first message after it
// what may be gone. Written by `eirkit guard install opencode`; `eirkit guard uninstall opencode` removes it.
import { spawn } from "node:child_process"
import { homedir } from "node:os"
import { join } from "node:path"

const COMMAND = "COMMAND"
const LIMIT_MS = 30000

// Asks the guard; whatever goes wrong, the answer is empty and the session goes on.
const ask = (event, payload) =>
  new Promise((resolve) => {
    try {
      const child = spawn(COMMAND[0], [...COMMAND.slice(1), event], { stdio: ["pipe", "pipe", "ignore"] })
      const timer = setTimeout(() => child.kill(), LIMIT_MS)
      let said = ""
      child.stdout.on("data", (data) => (said += data))
      child.on("error", () => resolve(""))
      child.on("close", () => {
        clearTimeout(timer)
        try {
          resolve(JSON.parse(said).hookSpecificOutput.additionalContext)
        } catch {
          resolve("")
        }
      })
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify(payload))
    } catch {
      resolve("")
    }
  })

export const EirkitGuard = async ({ directory }) => {
  const data = process.env.XDG_DATA_HOME || join(homedir(), ".local", "share")
  const transcript = join(data, "opencode", "opencode.db")
  const about = (session) => ({ session_id: session, transcript_path: transcript, cwd: directory })
  const waiting = new Set() // sessions whose compaction has begun
  const notes = new Map() // what is said to each session since its last compaction

  const compacted = (session) => {
    if (waiting.delete(session)) notes.set(session, ask("SessionStart", { ...about(session), source: "compact" }))
    return notes.get(session)
  }

  return {
    "experimental.session.compacting": async ({ sessionID }) => {
      waiting.add(sessionID)
      await ask("PreCompact", about(sessionID))
    },
    "experimental.compaction.autocontinue": async ({ sessionID }) => {
      await compacted(sessionID)
    },
    event: async ({ event }) => {
      if (event.type === "session.compacted") await compacted(event.properties.sessionID)
    },
    "experimental.chat.messages.transform": async (_input, output) => {
      const messages = output.messages
      const summary = messages.findLastIndex(({ info }) => info.role === "assistant" && info.summary)
      const session = messages[0]?.info.sessionID
      if (summary < 0 || waiting.has(session)) return
      // A session that another process compacted was told something then.
      if (!notes.has(session)) notes.set(session, ask("Resume", about(session)))
      const text = await notes.get(session)
      const first = messages.slice(summary).find(({ info }) => info.role === "user")
      if (!text || !first) return
      const own = { id: `prt_eirkit_${first.info.id}`, sessionID: session, messageID: first.info.id }
      first.parts.push({ ...own, type: "text", text, synthetic: true })
    },
  }
}
