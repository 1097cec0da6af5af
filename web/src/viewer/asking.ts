// Requests as state of components: how often a running folder is asked again, and what is shown until an answer comes.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Answers } from "../documents";
import { type Asked, addressOf, ask } from "./api";
import { isStatic } from "./static";

export interface Answer<T> {
  data: T | null;
  error: string;
  waiting: boolean;
}

const POLL_MS = 1000;

// Asks one address, one request at a time: a stamp that comes meanwhile is answered by the next.
class Asker<P extends keyof Answers> {
  private answered: string | null = null;
  private wanted = "";
  private busy = false;
  private readonly stop = new AbortController();

  constructor(
    private readonly path: P,
    private readonly asked: Asked,
    private readonly tell: (answer: Partial<Answer<Answers[P]>>) => void,
  ) {}

  async want(stamp: string): Promise<void> {
    this.wanted = stamp;
    if (this.busy) return;
    this.busy = true;
    while (this.answered !== this.wanted && !this.stop.signal.aborted) {
      this.answered = this.wanted;
      this.say({ waiting: true });
      try {
        this.say({ data: await ask(this.path, this.asked, this.stop.signal), error: "", waiting: false });
      } catch (error) {
        this.say({ data: null, error: (error as Error).message, waiting: false });
      }
    }
    this.busy = false;
  }

  end(): void {
    this.stop.abort();
  }

  private say(answer: Partial<Answer<Answers[P]>>): void {
    if (!this.stop.signal.aborted) this.tell(answer);
  }
}

// Ask for something; `stamp` asks again when it changes. The last answer stays until the next one is there.
export function useAnswer<P extends keyof Answers>(path: P | null, asked: Asked, stamp = ""): Answer<Answers[P]> {
  const [answer, setAnswer] = useState<Answer<Answers[P]>>({ data: null, error: "", waiting: true });
  const asker = useRef<Asker<P> | null>(null);
  const address = path === null ? "" : addressOf(path, asked);
  useEffect(() => {
    if (path === null) return;
    const own = new Asker<P>(path, asked, (news) => setAnswer((before) => ({ ...before, ...news })));
    asker.current = own;
    void own.want(stamp);
    return () => own.end();
  }, [address]);
  useEffect(() => void asker.current?.want(stamp), [stamp]);
  return answer;
}

// A text that changes whenever the folder does; nothing is asked while the page is out of sight.
export function useStamp(at: string | null): string {
  const [stamp, setStamp] = useState("");
  useEffect(() => {
    if (at === null) return;
    let over = false;
    const look = async () => {
      if (document.hidden) return;
      try {
        const { stamp: found } = await ask("changes", { at });
        if (!over) setStamp(found);
      } catch {
        // The server has ended, or the folder is gone; what was read stays on the page.
      }
    };
    void look();
    if (isStatic()) return; // nothing changes
    const timer = setInterval(look, POLL_MS);
    return () => {
      over = true;
      clearInterval(timer);
    };
  }, [at]);
  return stamp;
}
