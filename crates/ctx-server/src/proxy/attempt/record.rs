//! Records an assembled request.

use std::collections::HashMap;

use ctx_core::{EntryId, ORPHANED_RESULT, Tokens};
use ctx_hosted::{AssembledRequest, HostedSession};
use ctx_session::clock;
use ctx_trace::{CompactionRecord, EntryRecord, Preview, Record, SessionInfo};
use foldhash::quality::RandomState;

use super::Attempt;
use crate::proxy::conversation::{Conversation, ConversationState};
use crate::proxy::origin;
use crate::proxy::redacted::preview;
use crate::proxy::summary_record::record_compaction;
use crate::proxy::units::first_user_unit;

impl Attempt<'_> {
    /// Counts the tool results dropped because they match no call, and warns about them.
    pub(super) fn note_orphans(&self, record: &Record) {
        let is_orphan = |entry: &&EntryRecord| entry.reason.as_deref() == Some(ORPHANED_RESULT);
        let orphans = record.entries.iter().filter(is_orphan).count();
        if orphans > 0 {
            self.proxy.metrics.orphaned_results.inc_by(orphans as u64);
            self.proxy.warn(
                "tool results are dropped from a request: their calls are missing, or already have \
                 a result (ctx_orphaned_results_total counts them)",
            );
        }
    }

    pub(super) fn record(
        &self,
        conversation: &Conversation,
        state: &mut ConversationState,
        assembled: &AssembledRequest,
        compaction: Option<CompactionRecord>,
    ) -> Record {
        let number = state.number;
        state.number += 1;
        let ConversationState { session, begins, learned, .. } = state;
        let mut record = Record {
            session: conversation.id.clone(),
            number,
            at: clock::now(),
            protocol: self.client_request.protocol().name().into(),
            model: self.request.model.as_deref().map(str::to_owned),
            limit: assembled.limit,
            sent_tokens: assembled.tokens,
            fits: assembled.tokens <= assembled.limit,
            unchanged_prefix: assembled.unchanged_prefix,
            attempts: 1,
            compaction,
            ..Record::default()
        };
        let Some(session) = session else { return record };
        let ledger = &session.ledger;
        let native = session.resolved.window.tokens;
        record.window = learned.window().map_or(native, |learned| learned.min(native));
        record.reserve = ledger.reserve();
        let items = session.history.items();
        let all: Tokens =
            items.iter().filter_map(|item| item.entry.tokens(ledger.counter()).ok()).sum();
        record.raw_tokens = ledger.corrected(all + ledger.fixed());
        for edit in &assembled.edits {
            match record.actions.get_mut(&*edit.layer) {
                Some(count) => *count += 1,
                None => drop(record.actions.insert(edit.layer.to_string(), 1)),
            }
        }
        for compacted in &assembled.compactions {
            let entry = session.in_force.as_ref().and_then(|kept| kept.summary_id()).cloned();
            record.compaction =
                Some(record_compaction(self.proxy, &conversation.id, entry, compacted));
        }
        if let Some(compaction) = &mut record.compaction {
            compaction.request = number;
        }
        let Some(view) = &session.view else { return record };
        let manifest = view.manifest();
        record.components = manifest.components;
        record.entries = manifest.entries.into_iter().map(EntryRecord::from).collect();
        record.components.retain(|part| part.name != "pending");
        add_previews(&mut record, session, assembled, begins);
        record
    }

    pub(super) fn info(&self, id: &str, session: &HostedSession) -> SessionInfo {
        let title = first_user_unit(self.units).map(|unit| preview(unit.message()));
        let title = title.unwrap_or_default();
        SessionInfo {
            id: id.to_owned(),
            title,
            model: self.request.model.as_deref().map(str::to_owned),
            engine: session.resolved.engine.id.clone(),
            profile: session.resolved.profile.name().to_owned(),
            counter: session.ledger.counter().kind.name().to_owned(),
            client: origin::client(&self.client_request.headers),
            project: origin::project(self.request.system.as_deref(), self.units),
        }
    }
}

/// Sets the previews of all messages; `begins` caches them.
fn add_previews(
    record: &mut Record,
    session: &HostedSession,
    assembled: &AssembledRequest,
    begins: &mut HashMap<EntryId, Preview, RandomState>,
) {
    let message = |id: &EntryId| {
        let item = session.history.position(id).and_then(|at| session.history.items().get(at));
        let stored = item.and_then(|item| item.entry.message().ok());
        stored.or_else(|| {
            let out = assembled.outgoing.iter().find(|out| out.id == *id);
            out.map(|out| out.message.clone())
        })
    };
    for entry in &mut record.entries {
        let preview = begins.entry(entry.entry.clone()).or_insert_with(|| {
            let message = message(&entry.entry);
            Preview::new(move || message.as_deref().map(preview).unwrap_or_default())
        });
        entry.begins = preview.clone();
    }
}
