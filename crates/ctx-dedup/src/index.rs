//! The lines of the results in a request, and runs of them in another result.

use std::collections::HashMap;
use std::hash::RandomState;
use std::ops::Range;

use ctx_core::{CallId, ContextView, NodeHandle, NodeState};

use crate::line::Line;

/// The number of places, newest first, at which the rest of a run is compared.
const MOST_PLACES: usize = 32;

/// Lines kept at both ends of a run, so that the model sees what is continued.
const CONTEXT: usize = 2;

/// A longer line is not kept at the ends of a run.
const LONGEST_CONTEXT: usize = 200;

/// A result whose lines pointers can name.
#[derive(Debug)]
struct Source {
    place: NodeHandle,
    call: CallId,
    lines: Vec<Line>,
}

/// Lines of a result that stand in an earlier one.
#[derive(Debug)]
pub(crate) struct Run {
    /// The lines of the new result.
    pub(crate) lines: Range<usize>,
    /// By how much their numbers are higher than those of the earlier ones.
    pub(crate) shift: i64,
    /// The first of the earlier lines.
    pub(crate) first: usize,
    /// The position of the earlier result, and its call.
    pub(crate) at: usize,
    pub(crate) call: CallId,
}

/// The results of one view that are sent as recorded.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) hasher: RandomState,
    sources: Vec<Source>,
    /// Where two lines follow each other: the source and the first line.
    pairs: HashMap<(u64, u64), Vec<(u32, u32)>>,
}

impl Index {
    /// Forgets the results from a position on.
    pub(crate) fn cut(&mut self, view: &ContextView, from: usize) {
        let stays = |source: &Source| view.position(source.place).is_some_and(|at| at < from);
        while self.sources.last().is_some_and(|source| !stays(source)) {
            self.sources.pop();
        }
        let sources = self.sources.len();
        self.pairs.retain(|_, places| {
            places.retain(|&(source, _)| (source as usize) < sources);
            !places.is_empty()
        });
    }

    /// Adds a result.
    pub(crate) fn add(&mut self, place: NodeHandle, call: CallId, lines: Vec<Line>) {
        let source = self.sources.len() as u32;
        for at in 0..lines.len() {
            self.pairs.entry(pair(&lines, at)).or_default().push((source, at as u32));
        }
        self.sources.push(Source { place, call, lines });
    }

    /// Returns the runs of at least `least` bytes of the result at position `at` that stand in
    /// earlier results.
    pub(crate) fn runs(
        &self,
        view: &ContextView,
        at: usize,
        lines: &[Line],
        least: usize,
    ) -> Vec<Run> {
        let (mut runs, mut from) = (Vec::new(), 0);
        while from < lines.len() {
            let Some(run) = self.longest(view, at, lines, from) else {
                from += 1;
                continue;
            };
            from = run.lines.end;
            let run = shortened(run, lines);
            if lines[run.lines.clone()].iter().map(|line| line.bytes).sum::<usize>() >= least {
                runs.push(run);
            }
        }
        runs
    }

    /// Returns the longest run that begins with the line `from`; of several, the newest.
    fn longest(&self, view: &ContextView, at: usize, lines: &[Line], from: usize) -> Option<Run> {
        let places = self.pairs.get(&pair(lines, from))?;
        let mut longest: Option<Run> = None;
        for &(source, first) in places.iter().rev().take(MOST_PLACES) {
            let (source, first) = (&self.sources[source as usize], first as usize);
            let Some(shift) = lines[from].shift(&source.lines[first]) else { continue };
            let pairs = lines[from..].iter().zip(&source.lines[first..]);
            let count = pairs.take_while(|(own, other)| continues(own, other, shift)).count();
            if longest.as_ref().is_some_and(|run| run.lines.len() >= count) {
                continue;
            }
            let Some(target) = view.position(source.place).filter(|&target| target < at) else {
                continue;
            };
            if view.node(target).state() == NodeState::Kept {
                let lines = from..from + count;
                longest = Some(Run { lines, shift, first, at: target, call: source.call.clone() });
            }
        }
        longest
    }
}

fn pair(lines: &[Line], at: usize) -> (u64, u64) {
    (lines[at].hash, lines.get(at + 1).map_or(0, |line| line.hash))
}

/// Whether a line continues a run. Lines without numbers continue any run.
fn continues(own: &Line, other: &Line, shift: i64) -> bool {
    own.shift(other).is_some_and(|found| found == shift || own.number.is_none())
}

/// Returns a run without the lines at its ends that stay as context.
fn shortened(mut run: Run, lines: &[Line]) -> Run {
    let stays = |line: &&Line| line.bytes <= LONGEST_CONTEXT;
    let own = &lines[run.lines.clone()];
    let before = own.iter().take(CONTEXT).take_while(stays).count();
    let after = own[before..].iter().rev().take(CONTEXT).take_while(stays).count();
    run.first += before;
    run.lines = run.lines.start + before..run.lines.end - after;
    run
}
