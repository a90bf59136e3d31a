//! The lines of the results in a request, and runs of them in another result.

use std::collections::HashMap;
use std::hash::RandomState;

use ctx_core::{CallId, ContextView, NodeHandle};

use crate::config::LAYER;
use crate::line::{Line, Run};

/// The number of places, newest first, at which the rest of a run is compared.
const MOST_PLACES: usize = 32;

/// Lines kept at both ends of a run, so that the model sees what is continued.
const CONTEXT: usize = 1;

/// A longer line is not kept at the ends of a run.
const LONGEST_CONTEXT: u32 = 200;

/// The hashes of a line and of the next one.
type Pair = (u64, Option<u64>);

/// A result whose lines pointers can name.
#[derive(Debug)]
struct IndexedResult {
    place: NodeHandle,
    call: CallId,
    /// Its first line among all lines.
    start: usize,
}

/// The lines of the results of one view, except those that pointers replace.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) hasher: RandomState,
    sources: Vec<IndexedResult>,
    /// The lines of all sources, each with the last earlier one that begins the same pair of lines.
    lines: Vec<(Line, Option<u32>)>,
    /// The last line that begins a pair.
    last: HashMap<Pair, u32>,
}

impl Index {
    /// Forgets the results from a position on.
    pub(crate) fn cut(&mut self, view: &ContextView, from: usize) {
        let stays =
            |source: &IndexedResult| view.position(source.place).is_some_and(|at| at < from);
        while let Some(source) = self.sources.pop_if(|source| !stays(source)) {
            for at in (source.start..self.lines.len()).rev() {
                let pair = self.pair(at);
                match self.lines[at].1 {
                    Some(earlier) => self.last.insert(pair, earlier),
                    None => self.last.remove(&pair),
                };
            }
            self.lines.truncate(source.start);
        }
    }

    /// Adds a result.
    pub(crate) fn add(&mut self, place: NodeHandle, call: CallId, lines: Vec<Line>) {
        let start = self.lines.len();
        self.sources.push(IndexedResult { place, call, start });
        self.lines.extend(lines.into_iter().map(|line| (line, None)));
        for at in start..self.lines.len() {
            self.lines[at].1 = self.last.insert(self.pair(at), at as u32);
        }
    }

    /// Returns the pair that begins with a line of the last source.
    fn pair(&self, at: usize) -> Pair {
        (self.lines[at].0.hash, self.lines.get(at + 1).map(|(line, _)| line.hash))
    }

    /// Returns the runs of at least `least` characters of the result at position `at` that stand in
    /// earlier results.
    pub(crate) fn runs(
        &self,
        view: &ContextView,
        at: usize,
        lines: &[Line],
        least: u32,
    ) -> Vec<Run> {
        let (mut runs, mut from) = (Vec::new(), 0);
        while from < lines.len() {
            let Some(run) = self.longest(view, at, lines, from) else {
                from += 1;
                continue;
            };
            from = run.lines.end;
            let run = shortened(run, lines);
            let chars = lines[run.lines.clone()].iter().map(|line| u64::from(line.chars));
            if chars.sum::<u64>() >= u64::from(least) {
                runs.push(run);
            }
        }
        runs
    }

    /// Returns the longest run that begins with the line `from`; of several, the newest.
    fn longest(&self, view: &ContextView, at: usize, lines: &[Line], from: usize) -> Option<Run> {
        let pair = (lines[from].hash, lines.get(from + 1).map(|line| line.hash));
        let first = self.last.get(&pair).copied();
        let places = std::iter::successors(first, |&place| self.lines[place as usize].1);
        let mut longest: Option<Run> = None;
        for place in places.take(MOST_PLACES).map(|place| place as usize) {
            let next = self.sources.partition_point(|source| source.start <= place);
            let end = self.sources.get(next).map_or(self.lines.len(), |source| source.start);
            let (source, earlier) = (&self.sources[next - 1], &self.lines[place..end]);
            let Some(shift) = lines[from].shift(&earlier[0].0) else { continue };
            let pairs = lines[from..].iter().zip(earlier);
            let count = pairs.take_while(|(own, (other, _))| own.continues(other, shift)).count();
            if longest.as_ref().is_some_and(|run| run.lines.len() >= count) {
                continue;
            }
            let target = view.position(source.place).filter(|&target| target < at);
            if let Some(target) = target.filter(|&at| view.is_target(at, LAYER)) {
                longest = Some(Run {
                    lines: from..from + count,
                    shift,
                    first: place - source.start,
                    at: target,
                    call: source.call.clone(),
                });
            }
        }
        longest
    }
}

/// Returns a run without the lines at its ends that stay as context.
fn shortened(mut run: Run, lines: &[Line]) -> Run {
    let stays = |line: &&Line| line.chars <= LONGEST_CONTEXT;
    let own = &lines[run.lines.clone()];
    let before = own.iter().take(CONTEXT).take_while(stays).count();
    let after = own[before..].iter().rev().take(CONTEXT).take_while(stays).count();
    run.first += before;
    run.lines = run.lines.start + before..run.lines.end - after;
    run
}
