//! The wait-for graph of the lanes.

use std::collections::HashMap;

use ctx_session::key::SessionKey;

/// One entry into a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Visit(u64);

/// All current visits. A visit that started another one waits for it.
#[derive(Debug, Default)]
pub(super) struct Waits {
    next: u64,
    visits: HashMap<Visit, VisitState>,
}

#[derive(Debug)]
struct VisitState {
    key: SessionKey,
    by: Option<Visit>,
    /// Whether it is in the lane, or still waits for it.
    inside: bool,
}

impl Waits {
    /// Records that a visit waits for the lane of `key`, started from the visit `by`.
    ///
    /// # Errors
    ///
    /// The sessions of the cycle that this would close, the caller's first.
    pub(super) fn wait(
        &mut self,
        key: &SessionKey,
        by: Option<Visit>,
    ) -> Result<Visit, Vec<SessionKey>> {
        if let Some(by) = by
            && let Some(cycle) = self.cycle(key, by)
        {
            return Err(cycle);
        }
        let visit = Visit(self.next);
        self.next += 1;
        self.visits.insert(visit, VisitState { key: key.clone(), by, inside: false });
        Ok(visit)
    }

    /// Records that the visit is in the lane.
    pub(super) fn entered(&mut self, visit: Visit) {
        if let Some(known) = self.visits.get_mut(&visit) {
            known.inside = true;
        }
    }

    /// Removes a visit that ended or was cancelled.
    pub(super) fn left(&mut self, visit: Visit) {
        self.visits.remove(&visit);
    }

    /// Follows the visits from `key` to the lanes they wait for. Reaching a lane of `by`, or of a
    /// visit that waits for `by`, closes a cycle, which is returned.
    fn cycle(&self, key: &SessionKey, by: Visit) -> Option<Vec<SessionKey>> {
        let mine: Vec<&SessionKey> = self.chain(by).map(|known| &known.key).collect();
        // Each lane reached, and the index of its predecessor.
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

    /// Returns the lanes that visits in this lane wait for, directly or through visits that they
    /// started.
    fn waited_for_in<'a>(&'a self, key: &SessionKey) -> impl Iterator<Item = &'a SessionKey> {
        let holder = self.visits.iter().find(|(_, known)| known.inside && known.key == *key);
        let holder = holder.map(|(visit, _)| *visit);
        let below = move |known: &&VisitState| {
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

    /// Returns a visit, the visit that started it, and so on.
    fn chain(&self, visit: Visit) -> impl Iterator<Item = &VisitState> {
        let first = self.visits.get(&visit);
        std::iter::successors(first, |known| self.visits.get(&known.by?))
    }
}

/// Returns the path from the caller's lane to the lane reached last.
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
