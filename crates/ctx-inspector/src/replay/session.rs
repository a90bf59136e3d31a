//! A replayed session.

use ctx_core::text::Slice;
use ctx_trace::EntryRecord;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use ctx_core::{Action, EntryId, Error, ErrorKind, ManifestEntry, NodeState, Result, Timestamp};
use ctx_eval::{
    CompactionDiff, ReplayReport, SessionReport, manifest_at, preview, replay, request_ends,
};
use ctx_runtime::lookup::provenance::{LineOrigin, SummaryFacts, SummaryText, cited_messages};
use ctx_session::{Home, ReplayMessage, StoredCompaction, Transcript, undo_compaction};
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::compactions;
use super::listing::ListedSession;
use super::setup::{ReplaySettings, replay_setup};
use crate::diff::{DiffPage, DiffQuery};
use crate::rows::{by_layer, unknown_compaction, unknown_entry};
use crate::shape::{
    CompactionRow, EntriesQuery, EntryPage, EntryQuery, Overview, Progress, RequestPage,
    RequestRow, SessionHead, UndoResult,
};
use crate::source::SessionView;
use crate::text::{message_contains, message_view};

pub(super) struct ReplayedSession {
    listed: ListedSession,
    home: Home,
    transcript: Transcript,
    line: Vec<ReplayMessage>,
    ends: Vec<usize>,
    places: HashMap<EntryId, usize>,
    stored: Vec<StoredCompaction>,
    /// The request after each stored compaction, from 0.
    requests: Vec<Option<usize>>,
    report: ReplayReport,
    counter: ctx_core::Counter,
    /// The last requested manifest, with its request.
    manifest: Mutex<Option<(usize, Arc<Vec<EntryRecord>>)>>,
    /// The last requested diff.
    diff: Mutex<Option<Arc<CompactionDiff>>>,
    /// The facts up to the last summary that was asked for.
    facts: Mutex<SummaryFacts>,
}

impl ReplayedSession {
    /// Reads and replays a transcript, reporting progress.
    pub(super) fn read(
        with: &ReplaySettings,
        listed: &ListedSession,
        handle: &Handle,
        progress: &watch::Sender<Progress>,
    ) -> Result<Self> {
        let transcript = ctx_session::open(&with.home, &listed.path)?;
        let line = transcript.messages_with_compactions(None)?.items;
        let total = line.len();
        progress.send_modify(|progress| progress.total = total);
        let (setup, warnings) = replay_setup(with, listed, &transcript)?;
        let session = SessionReport::of(&listed.path, &transcript)?;
        // Progress is reported in steps of one percent.
        let step = (total / 100).max(1);
        let run = replay(&line, session, &setup, |done| {
            if done % step == 0 {
                progress.send_modify(|progress| progress.done = done);
            }
        });
        let mut report = handle.block_on(run)?;
        report.warnings = warnings;
        let problems = transcript.problems.iter().filter(|problem| !problem.kind.is_harmless());
        report.warnings.extend(problems.take(5).map(ToString::to_string));
        let stored = transcript.compaction_list(None).unwrap_or_else(|error| {
            report.warnings.push(format!("stored compactions are ignored: {error}"));
            Vec::new()
        });
        let ends = request_ends(&line);
        let requests =
            ctx_eval::requests_after(&transcript, line.iter().map(|of| &of.item), &stored);
        let places = line.iter().enumerate();
        let places = places.map(|(at, item)| (item.item.entry.id().clone(), at)).collect();
        Ok(Self {
            listed: listed.clone(),
            home: with.home.clone(),
            ends,
            requests,
            places,
            transcript,
            line,
            stored,
            report,
            counter: *setup.ledger.counter(),
            manifest: Mutex::default(),
            diff: Mutex::default(),
            facts: Mutex::default(),
        })
    }

    /// Completes a row of the list with the results of the replay.
    pub(super) fn head(&self, head: SessionHead) -> SessionHead {
        let newest = self.report.requests.last();
        let last_at = self.line.iter().rev().find_map(|item| item.item.entry.timestamp());
        SessionHead {
            session_id: self.transcript.header.id.clone().or(head.session_id),
            model: self.report.model.clone().or(head.model),
            engine: Some(self.report.engine.clone()),
            window: Some(self.report.window),
            requests: Some(self.report.requests.len()),
            messages: Some(self.report.session.messages),
            compactions: Some(self.rows().iter().filter(|row| row.applied).count() as u64),
            last_at: last_at.or(head.last_at),
            raw_tokens: newest.map(|request| request.raw_tokens.get()),
            sent_tokens: newest.map(|request| request.sent_tokens.get()),
            ..head
        }
    }

    fn rows(&self) -> Vec<CompactionRow> {
        compactions::rows(&self.stored, &self.requests, &self.report)
    }

    fn row(&self, at: usize) -> Option<RequestRow> {
        let request = self.report.requests.get(at)?;
        Some(RequestRow {
            number: at + 1,
            entry: Some(request.entry_id.clone()),
            at: request.timestamp,
            recorded_tokens: request.recorded_tokens,
            raw_tokens: request.raw_tokens.get(),
            sent_tokens: request.sent_tokens.get(),
            cached_tokens: Some(request.cached_tokens.get()),
            unchanged_prefix: request.unchanged_prefix.get(),
            fits: request.fits,
            cost_usd: request.cost_usd,
            recalled_tokens: request.recalled_tokens.get(),
            actions: request.actions.clone(),
            ..RequestRow::default()
        })
    }

    fn manifest(&self, at: usize) -> Result<Arc<Vec<EntryRecord>>> {
        let mut kept = self.manifest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, manifest)) = &*kept
            && *of == at
        {
            return Ok(manifest.clone());
        }
        let end = self.ends.get(at).copied().unwrap_or(0);
        let line = self.line.slice(..end);
        let entries = manifest_at(line, &self.report.details, &self.counter, at)?;
        // An insertion that a later request dropped again is not shown.
        let is_of_it = |entry: &ManifestEntry| {
            entry.state != NodeState::Dropped || self.places.contains_key(&entry.entry)
        };
        let entries = entries.into_iter().filter(is_of_it).map(EntryRecord::from);
        let manifest = Arc::new(entries.collect::<Vec<_>>());
        *kept = Some((at, manifest.clone()));
        Ok(manifest)
    }

    /// Returns an entry as recorded; an inserted entry, as sent.
    fn message(&self, entry: &EntryId, at: usize) -> Option<Arc<ctx_core::Message>> {
        let recorded = self.places.get(entry).and_then(|&place| self.line.get(place));
        let recorded = recorded.and_then(|item| item.item.entry.message().ok());
        recorded.or_else(|| self.form(entry, at))
    }

    /// Returns an entry as sent in a request, if the replay stored that form.
    fn form(&self, entry: &str, at: usize) -> Option<Arc<ctx_core::Message>> {
        let details = self.report.details.get(..=at)?;
        let mut forms = details.iter().rev().flat_map(|detail| &detail.forms);
        forms.find(|form| &*form.entry == entry)?.message.clone()
    }
}

impl SessionView for ReplayedSession {
    fn overview(&self, from: usize) -> Result<Overview> {
        let report = &self.report;
        let total = report.requests.len();
        let from = from.min(total);
        Ok(Overview {
            head: self.head(self.listed.head.clone()),
            format: Some(report.session.format.clone()),
            reserve: report.reserve,
            limit: report.window - report.reserve,
            profile: Some(report.profile.to_string()),
            counter: Some(report.counter.clone()),
            from,
            rows: (from..total).filter_map(|at| self.row(at)).collect(),
            total,
            totals: Some(report.totals.clone()),
            recorded: report.recorded,
            calibration: report.calibration,
            compacted: self.rows(),
            layers: report.layers.clone(),
            warnings: report.warnings.clone(),
        })
    }

    fn request(&self, number: usize, query: &EntriesQuery) -> Result<RequestPage> {
        let (at, row) = number
            .checked_sub(1)
            .and_then(|at| Some((at, self.row(at)?)))
            .ok_or_else(|| self.no_request(number))?;
        let manifest = self.manifest(at)?;
        let detail = self.report.details.get(at);
        let edits = detail.map_or(&[][..], |detail| &detail.edits);
        let changed: std::collections::HashSet<&EntryId> = edits
            .iter()
            .filter(|edit| !matches!(edit.action, Action::Pin | Action::Move))
            .map(|edit| &edit.entry)
            .collect();
        let page = RequestPage {
            row,
            title: self.listed.head.title.clone(),
            requests: self.report.requests.len(),
            window: self.report.window,
            reserve: self.report.reserve,
            limit: self.report.window - self.report.reserve,
            components: detail.map(|detail| detail.components.clone()).unwrap_or_default(),
            edits: by_layer(edits),
            ..RequestPage::default()
        };
        let is_changed = |entry: &EntryRecord| changed.contains(&entry.entry);
        let contains = |entry: &EntryRecord, words: &str| {
            let message = self.message(&entry.entry, at);
            message.is_some_and(|message| message_contains(&message, words))
        };
        let begins = |entry: &EntryRecord| {
            let message = self.message(&entry.entry, at);
            message.map(|message| preview(&message).into()).unwrap_or_default()
        };
        Ok(page.with_entries(&manifest, query, is_changed, contains, begins))
    }

    fn entry(&self, id: &str, query: &EntryQuery) -> Result<EntryPage> {
        let number = query.request;
        let at = number.map_or(self.report.requests.len(), |number| number).saturating_sub(1);
        let recorded = self.places.get(id).and_then(|&place| self.line.get(place));
        let fate = match number {
            Some(_) => self.manifest(at)?.iter().find(|entry| &*entry.entry == id).cloned(),
            None => None,
        };
        let form = self.form(id, at);
        if recorded.is_none() && form.is_none() && fate.is_none() {
            return Err(unknown_entry(id));
        }
        let message = recorded.map(|item| item.item.entry.message()).transpose()?;
        let role = message.as_ref().or(form.as_ref()).map(|message| message.role.name().to_owned());
        let state = fate.as_ref().map(|fate| fate.state);
        let is_edited = matches!(state, Some(NodeState::Replaced | NodeState::Inserted));
        let is_lost = is_edited && form.is_none();
        let note = is_lost.then(|| "the sent text was too large to be stored".to_owned());
        Ok(EntryPage {
            entry: id.to_owned(),
            role: role.or_else(|| Some(fate.as_ref()?.role.clone())).unwrap_or_default(),
            at: recorded.and_then(|item| item.item.entry.timestamp()),
            recorded: message.map(|message| message_view(&message, &self.counter, query)),
            sent: form.filter(|_| is_edited).map(|form| message_view(&form, &self.counter, query)),
            fate,
            note,
        })
    }

    fn diff(&self, compaction: &str, query: &DiffQuery) -> Result<DiffPage> {
        let diff = self.diff_of(compaction)?;
        Ok(DiffPage::of(&diff, query))
    }

    fn why(&self, compaction: &str, line: &str) -> Result<Vec<LineOrigin>> {
        let diff = self.diff_of(compaction)?;
        let said = cited_messages(self.line.iter().map(|item| &*item.item.entry));
        let last = diff.removed.last().map(|removed| &removed.entry);
        let end = said.iter().rposition(|one| Some(&one.id) == last).map_or(0, |last| last + 1);
        let compaction = self.stored.iter().find(|stored| *stored.id == *compaction);
        let text = SummaryText { compaction, text: &diff.summary, originals: said.slice(..end) };
        let mut facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(text.origins(line, &mut facts))
    }

    fn undo(&self, compaction: &str, now: Timestamp) -> Result<UndoResult> {
        let stored = self.stored.iter().find(|stored| &*stored.id == compaction);
        let Some(stored) = stored else {
            if self.rows().iter().any(|row| row.id == compaction) {
                return Err(Error::new(ErrorKind::InvalidInput, "this compaction is not stored")
                    .hint("the replay made it, so there is nothing to undo"));
            }
            return Err(unknown_compaction(compaction));
        };
        let path: &PathBuf = &self.listed.path;
        // Undoing the undo of a compaction redoes it.
        let target = stored.undone_by.as_ref().unwrap_or(&stored.id);
        let done = undo_compaction(&self.home, path, Some(target), now)?;
        let reason = done.is_none().then(|| "already undone".to_owned());
        Ok(UndoResult {
            undone: done.is_some(),
            redone: done.as_ref().is_some_and(|done| done.redone),
            reason,
            compaction_id: Some(compaction.to_owned()),
            entry_id: done.map(|done| done.id.to_string()),
        })
    }
}

impl ReplayedSession {
    fn diff_of(&self, compaction: &str) -> Result<Arc<CompactionDiff>> {
        let mut kept = self.diff.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(diff) = kept.as_ref().filter(|diff| &*diff.compaction == compaction) {
            return Ok(diff.clone());
        }
        let (line, reported) = ((&*self.line, &*self.ends), &self.report.compactions);
        let (transcript, stored) = (&self.transcript, &self.stored);
        let diff =
            compactions::diff(compaction, transcript, stored, line, reported, &self.counter)?;
        let diff = Arc::new(diff);
        *kept = Some(diff.clone());
        Ok(diff)
    }

    fn no_request(&self, number: usize) -> Error {
        Error::new(ErrorKind::NotFound, "unknown request")
            .with("request", number)
            .with("requests", self.report.requests.len())
            .hint("requests are numbered from 1")
    }
}
