/**
 * Whether locks and keys outlive a crash of the server: `persistent` ones do; `ephemeral` ones are freed or forgotten by it, and
 * cost less. Two name spaces: the same name may be in both.
 */
export type Durability = 'persistent' | 'ephemeral'
