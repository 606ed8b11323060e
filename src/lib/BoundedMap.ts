/** A map in memory of at most `capacity` entries: beyond it, the entry that was set longest ago is dropped. */
export class BoundedMap<K, V> extends Map<K, V> {
  constructor(readonly capacity: number) {
    super()
  }

  override set(key: K, value: V): this {
    this.delete(key)
    super.set(key, value)
    const [oldest] = this.size > this.capacity ? this.keys() : []
    if (oldest !== undefined) this.delete(oldest)
    return this
  }
}
