// What the colours and marks of a picture mean; a key and its word stay together.
export function Legend({ keys }: { keys: [look: string, word: string][] }) {
  return (
    <p class="legend" aria-hidden="true">
      {keys.map(([look, word]) => (
        <span key={look} class="entry">
          <span class={`key ${look}`} /> {word}
        </span>
      ))}
    </p>
  );
}
