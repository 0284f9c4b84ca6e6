// Hands what the server sends to handle.js, by its type a state or frames.  A mount carries its whole script in every
// message, so what changes often has this small one; handle.js may also come later than its letters.
export default function ({ data, key }) {
  const post = (globalThis.dpgramsPost ??= { letters: new Map() });
  post.letters.set(key, data);
  post.heard?.(data);
  return () => {
    if (post.letters.get(key) === data) post.letters.delete(key);
  };
}
