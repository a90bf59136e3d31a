//! Who waits for whom.

use std::collections::HashMap;

use ctx_session::key::SessionKey;

/// One entry into a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Visit(u64);

/// The visits there are. A visit may have been started by another one, and then that one waits for
/// it.
#[derive(Debug, Default)]
pub(super) struct Waits {
    next: u64,
    visits: HashMap<Visit, Known>,
}

#[derive(Debug)]
struct Known {
    key: SessionKey,
    by: Option<Visit>,
    /// Whether it is in the lane, or still waits for it.
    inside: bool,
}

impl Waits {
    /// Notes that somebody waits for the lane of `key`, from inside the visit `by`.
    ///
    /// # Errors
    ///
    /// The sessions of the ring that this would close, the caller's first.
    pub(super) fn wait(
        &mut self,
        key: &SessionKey,
        by: Option<Visit>,
    ) -> Result<Visit, Vec<SessionKey>> {
        if let Some(by) = by
            && let Some(ring) = self.ring(key, by)
        {
            return Err(ring);
        }
        let visit = Visit(self.next);
        self.next += 1;
        self.visits.insert(visit, Known { key: key.clone(), by, inside: false });
        Ok(visit)
    }

    /// It is in the lane now.
    pub(super) fn entered(&mut self, visit: Visit) {
        if let Some(known) = self.visits.get_mut(&visit) {
            known.inside = true;
        }
    }

    /// It is over, or was given up.
    pub(super) fn left(&mut self, visit: Visit) {
        self.visits.remove(&visit);
    }

    /// Follows from `key` on who is in the lane, and which lanes are waited for from there. A ring is
    /// closed by a lane that `by` is in, or one of those who wait for `by`.
    fn ring(&self, key: &SessionKey, by: Visit) -> Option<Vec<SessionKey>> {
        let mine: Vec<&SessionKey> = self.chain(by).map(|known| &known.key).collect();
        // Each lane reached, and the one before it.
        let mut reached: Vec<(&SessionKey, usize)> = vec![(key, 0)];
        let mut next = 0;
        while let Some(&(at, _)) = reached.get(next) {
            if mine.contains(&at) {
                return Some(path(&reached, next, mine.first()?));
            }
            for wanted in self.waited_for_in(at) {
                if !reached.iter().any(|(key, _)| *key == wanted) {
                    reached.push((wanted, next));
                }
            }
            next += 1;
        }
        None
    }

    /// The lanes that whoever is in this one waits for, himself or through those he started.
    fn waited_for_in<'a>(&'a self, key: &SessionKey) -> impl Iterator<Item = &'a SessionKey> {
        let holder = self.visits.iter().find(|(_, known)| known.inside && known.key == *key);
        let holder = holder.map(|(visit, _)| *visit);
        let below = move |known: &&Known| {
            holder.zip(known.by).is_some_and(|(holder, by)| self.is_below(by, holder))
        };
        self.visits.values().filter(|known| !known.inside).filter(below).map(|known| &known.key)
    }

    fn is_below(&self, visit: Visit, root: Visit) -> bool {
        let mut at = Some(visit);
        while let Some(visit) = at {
            if visit == root {
                return true;
            }
            at = self.visits.get(&visit).and_then(|known| known.by);
        }
        false
    }

    /// A visit, the one that started it, and so on.
    fn chain(&self, visit: Visit) -> impl Iterator<Item = &Known> {
        let first = self.visits.get(&visit);
        std::iter::successors(first, |known| self.visits.get(&known.by?))
    }
}

/// The way from the caller's lane to the lane that was reached last.
fn path(reached: &[(&SessionKey, usize)], last: usize, first: &SessionKey) -> Vec<SessionKey> {
    let mut back = vec![last];
    let mut at = last;
    while at != 0 {
        at = reached[at].1;
        back.push(at);
    }
    let way = back.into_iter().rev().map(|at| reached[at].0.clone());
    std::iter::once(first.clone()).chain(way).collect()
}
