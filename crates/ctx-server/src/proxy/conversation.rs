//! One conversation that passes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ctx_core::{EntryId, Tokens};

use super::cached::Cached;
use super::keep::{Added, Item, Keep, Kept, Line, Saved};
use super::learned::Learned;
use super::summaries::Slot;
use super::told::Known;
use crate::hosted::{Made, Mark, Session, Told};

/// A conversation. Its requests are prepared one after the other, whoever waits for answers.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) id: String,
    /// What it holds, to find it by.
    known: Mutex<Vec<Known>>,
    /// What the provider counted since a request was last prepared, and what it was estimated at.
    reported: Mutex<Option<(u64, u64)>>,
    /// The last request that was answered, which the provider may have in its cache.
    cached: Mutex<Option<Arc<Cached>>>,
    /// Whether a request that was refused at first was answered in its smaller form since.
    recovered: AtomicBool,
    /// Bytes of the last request's body: what it takes in memory grows with them.
    bytes: AtomicUsize,
    /// Whether it has a file.
    is_kept: AtomicBool,
    /// When it was last used, on a clock that counts uses.
    used: AtomicU64,
    pub(super) work: tokio::sync::Mutex<Work>,
}

/// What a request is prepared with.
#[derive(Default)]
pub(super) struct Work {
    pub(super) session: Option<Session>,
    /// What a file or another conversation brought, until the session is open.
    pub(super) saved: Saved,
    /// The number of the next request.
    pub(super) number: u64,
    pub(super) summaries: Slot,
    /// Sizes of what comes with every request beside the history.
    fixed: HashMap<&'static str, (Mark, Tokens)>,
    pub(super) begins: HashMap<EntryId, String>,
    pub(super) model: Option<String>,
    pub(super) learned: Learned,
    /// The window that the server told, and how often it was asked.
    pub(super) told: Option<Tokens>,
    pub(super) asks: u32,
    kept_compaction: Option<EntryId>,
    kept_report: Option<(u64, u64)>,
    /// What of the messages the file does not have yet: those from there on, where it had so many.
    unkept: Option<(usize, usize)>,
    /// Whether its file lacks something, so that all of it has to be written once more.
    is_behind: bool,
}

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Work").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Conversation {
    /// One that goes on from what was saved of it; of a new one that is nothing.
    pub(super) fn new(id: String, saved: Saved, is_kept: bool, number: u64) -> Self {
        let work = Work {
            number,
            kept_compaction: saved.in_force.as_ref().map(|kept| kept.first_kept.clone()),
            kept_report: saved.reported,
            ..Work::default()
        };
        Self {
            id,
            known: Mutex::new(saved.known.clone()),
            reported: Mutex::new(None),
            cached: Mutex::new(None),
            recovered: AtomicBool::new(false),
            bytes: AtomicUsize::new(0),
            is_kept: AtomicBool::new(is_kept),
            used: AtomicU64::new(0),
            work: tokio::sync::Mutex::new(Work { saved, ..work }),
        }
    }

    /// The messages it holds.
    pub(super) fn known(&self) -> MutexGuard<'_, Vec<Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what the provider counted; the next request is prepared with it.
    pub(super) fn report(&self, counted: u64, estimated: u64) {
        *self.reported.lock().unwrap_or_else(PoisonError::into_inner) = Some((counted, estimated));
    }

    pub(super) fn take_report(&self) -> Option<(u64, u64)> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Notes that a request was answered.
    pub(super) fn answered(&self, request: Arc<Cached>) {
        *self.cached.lock().unwrap_or_else(PoisonError::into_inner) = Some(request);
    }

    pub(super) fn cached(&self) -> Option<Arc<Cached>> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes that a smaller form was taken.
    pub(super) fn recovered(&self) {
        self.recovered.store(true, Ordering::Relaxed);
    }

    pub(super) fn take_recovered(&self) -> bool {
        self.recovered.swap(false, Ordering::Relaxed)
    }

    pub(super) fn touch(&self, clock: u64) {
        self.used.store(clock, Ordering::Relaxed);
    }

    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(super) fn set_bytes(&self, bytes: usize) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Whether what was cut of it is on disk.
    pub(super) fn is_kept(&self) -> bool {
        self.is_kept.load(Ordering::Relaxed)
    }

    /// What it takes in memory, about: the messages as they were read, and what was found out about
    /// them.
    pub(super) fn weight(&self) -> usize {
        const OF_ONE: usize = 64 << 10;
        OF_ONE + 2 * self.bytes.load(Ordering::Relaxed)
    }

    /// Takes over which messages the conversation holds now, so that others find it by them.
    pub(super) fn know(&self, work: &mut Work) {
        let Some(session) = &work.session else { return };
        let now: Vec<Known> = session.history.items().iter().filter_map(known).collect();
        let mut before = self.known();
        let same = before.iter().zip(&now);
        let from = same.take_while(|(a, b)| (&a.id, a.hash) == (&b.id, b.hash)).count();
        let (earlier, had) = work.unkept.unwrap_or((from, before.len()));
        work.unkept = Some((from.min(earlier), had));
        *before = now;
    }

    /// Keeps on disk what a request changed, if anything was cut.
    pub(super) fn keep(&self, work: &mut Work, made: &Made, keep: Option<&Keep>) {
        self.know(work);
        let (from, had) = work.unkept.take().unwrap_or_default();
        let Some(keep) = keep else { return };
        let is_kept = self.is_kept();
        let lines = work.lines(is_kept, &self.known(), from, had, made);
        if !lines.is_empty() {
            self.is_kept.store(true, Ordering::Relaxed);
            work.is_behind = keep.append(&self.id, lines) == Added::Lost;
        }
    }
}

impl Work {
    /// The size of a text that comes with every request: counted once, as it rarely changes.
    pub(super) fn size_of(
        &mut self,
        name: &'static str,
        text: Option<&str>,
        count: impl Fn(&str) -> Tokens,
    ) -> Tokens {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Tokens::ZERO };
        let mark = crate::hosted::mark(text);
        match self.fixed.get(name) {
            Some((known, tokens)) if *known == mark => *tokens,
            _ => {
                let tokens = count(text);
                self.fixed.insert(name, (mark, tokens));
                tokens
            }
        }
    }

    /// What another conversation that begins alike can go on from, or this one where it is opened
    /// anew.
    pub(super) fn inherit(&self) -> Saved {
        match &self.session {
            Some(session) => Saved {
                known: Vec::new(),
                forms: session.forms.values().cloned().collect(),
                in_force: session.in_force.clone(),
                reported: session.reported,
                made: session.history.made(),
            },
            None => Saved { known: Vec::new(), ..self.saved.clone() },
        }
    }

    /// Notes on disk that no compaction is in force any more.
    pub(super) fn keep_undone(&mut self, id: &str, keep: &Keep) {
        self.kept_compaction = None;
        self.is_behind |= keep.append(id, vec![Line::Compaction(None)]) == Added::Lost;
    }

    /// What is to be written of a request.
    fn lines(
        &mut self,
        is_kept: bool,
        now: &[Known],
        from: usize,
        before: usize,
        made: &Made,
    ) -> Vec<Line> {
        let mut lines = Vec::new();
        let Some(session) = &self.session else { return lines };
        if !is_kept && session.forms.is_empty() && session.in_force.is_none() {
            return lines;
        }
        let goes_on = is_kept && !self.is_behind;
        let from = if goes_on { from } else { 0 };
        if from < now.len() || from < before {
            let items = now[from..].iter().map(Item::of).collect();
            lines.push(Line::Told { from, items });
        }
        let boxed = |form: &ctx_core::Projection| Line::Form(Box::new(form.clone()));
        match goes_on {
            true => lines.extend(made.forms.iter().map(boxed)),
            false => lines.extend(session.forms.values().map(boxed)),
        }
        let in_force = session.in_force.as_ref();
        let first_kept = in_force.map(|in_force| in_force.first_kept.clone());
        if first_kept != self.kept_compaction || self.is_behind {
            lines.push(Line::Compaction(in_force.map(|in_force| Box::new(Kept::of(in_force)))));
            self.kept_compaction = first_kept;
        }
        // It differs with every answer; a file that is written anyway can as well have the last.
        if !lines.is_empty()
            && session.reported != self.kept_report
            && let Some((reported, estimated)) = session.reported
        {
            lines.push(Line::Reported(reported, estimated));
            self.kept_report = session.reported;
        }
        lines
    }
}

fn known(item: &crate::hosted::Item) -> Option<Known> {
    let mark = match &item.told {
        Told::Mark(mark) => Some(*mark),
        _ => None,
    };
    let is_instruction = item.entry.facts().ok()?.role == ctx_core::Role::System;
    Some(Known { id: item.entry.id().clone(), mark, hash: item.entry.hash().ok()?, is_instruction })
}
