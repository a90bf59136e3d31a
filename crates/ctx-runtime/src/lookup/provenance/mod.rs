//! Finds the messages that a line of a summary, a required fact or a fact of memory comes from.

mod quote;

use std::collections::HashSet;

use ctx_core::text::Slice;
use ctx_core::{EntryId, Error, ErrorKind, Result};
use ctx_facts::{
    CitedMessage, FactLedger, LedgerFacts, RequiredFact, citations, without_citations,
};
use ctx_layers::compaction::{Details, Receipt, find_facts};
use ctx_session::{BranchMessage, StoredCompaction, Transcript};
use ctx_text::gist;
use serde::Serialize;

pub(super) use quote::folded;
use quote::occurrence;
pub use quote::{SourceMessage, Support};

/// Maximum number of lines of one summary, and of facts, that are returned for a text.
pub const MOST: usize = 3;

/// The percentage of a text's words that its facts must contain to account for it.
const ENOUGH: usize = 70;

/// A line of a summary, or a text that no summary contains, and where it comes from.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LineOrigin {
    /// The compaction; `None` if no summary contains the text.
    pub compaction: Option<EntryId>,
    /// Whether the summary is the one in the context.
    pub in_force: bool,
    /// Whether the compaction was undone.
    pub undone: bool,
    /// The number of the line in the summary, from 1; 0 without a summary.
    pub number: usize,
    /// The line, or the text.
    pub line: String,
    /// The required facts that it states, most important first.
    pub facts: Vec<StatedFact>,
    /// The messages that it comes from. Without any, nothing in the originals supports the line.
    pub sources: Vec<SourceMessage>,
    /// The items of a list that no message contains.
    pub unsupported: Vec<String>,
}

/// A required fact that a line states.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatedFact {
    /// The fact, with the entry that states it last.
    #[serde(flatten)]
    pub fact: RequiredFact,
    /// Where it is.
    pub state: FactState,
    /// The later statement that replaced or withdrew it.
    pub superseded_by: Option<LaterStatement>,
}

/// What became of a required fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum FactState {
    /// In the summary, in the same words.
    Kept,
    /// In the summary, in other words.
    Reworded,
    /// In the summary: its draft lacked the fact, and repair added it.
    Repaired,
    /// Its message is in the context.
    InContext,
    /// Its message left the context, and the summary does not contain it.
    Lost,
}

/// A statement that replaced or withdrew an earlier one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LaterStatement {
    /// Its words.
    pub text: String,
    /// Its entry.
    pub entry: EntryId,
}

/// A summary and the messages that it stands for.
pub struct SummaryText<'a> {
    /// The compaction.
    pub compaction: EntryId,
    /// The text.
    pub text: &'a str,
    /// The receipt, if ctx wrote it.
    pub receipt: Option<Receipt>,
    /// The messages, those of earlier summaries included, oldest first.
    pub originals: &'a [CitedMessage],
}

/// Returns where a text comes from: the lines of summaries that contain it, newest compaction
/// first; else the required facts with these words; else the message with these words.
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`] for a text without words, [`ErrorKind::NotFound`] if nothing has the
/// words, and errors from reading the transcript.
pub fn line_origins(transcript: &Transcript, text: &str) -> Result<Vec<LineOrigin>> {
    let asked = words_of(text)?;
    let said = cited_messages(transcript.messages_to(None)?);
    let list = transcript.compaction_list(None)?;
    let in_force = list.iter().rfind(|one| !one.undone).map(|one| &one.id);
    let summaries: Vec<_> = list.iter().rev().map(|one| SummaryText::of(one, &said)).collect();
    let mut found: Vec<_> = summaries.iter().flat_map(|one| one.origins(&asked)).collect();
    let now = FactLedger::of(&said).facts();
    if found.is_empty() {
        let covers = |one: &&SummaryText<'_>| Some(&one.compaction) == in_force;
        let covered = summaries.iter().find(covers).map_or(0, |one| one.originals.len());
        found = fact_origins(&asked, &now, &summaries, said.split_at(covered));
    }
    if found.is_empty() {
        let (sources, unsupported) = search(&said, &asked);
        found.push(LineOrigin { line: asked, sources, unsupported, ..LineOrigin::default() });
        found.retain(|origin| !origin.sources.is_empty());
    }
    for origin in &mut found {
        origin.in_force = origin.compaction.is_some() && origin.compaction.as_ref() == in_force;
        let own = list.iter().find(|one| Some(&one.id) == origin.compaction.as_ref());
        origin.undone = own.is_some_and(|one| one.undone);
        for stated in &mut origin.facts {
            let is_it =
                |old: &RequiredFact| (old.kind, &old.text) == (stated.fact.kind, &stated.fact.text);
            let later = now.superseded.iter().find(|old| is_it(&old.fact));
            stated.superseded_by =
                later.map(|old| LaterStatement { text: old.by.clone(), entry: old.entry.clone() });
        }
        origin.sources.iter_mut().for_each(|source| source.find_place(transcript));
    }
    Ok(found)
}

/// Returns the words of a text from a summary, without bullet, citations and line breaks.
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`] if there are none.
pub fn words_of(text: &str) -> Result<String> {
    let words = bare(text);
    if words.contains(char::is_alphanumeric) {
        return Ok(words);
    }
    Err(Error::new(ErrorKind::InvalidInput, "the text contains no words")
        .hint("give a line of a summary or words of it; `ctx expand` takes citations"))
}

/// Returns messages with the ids that summaries cite, without those that are never sent to a model.
pub fn cited_messages(items: Vec<BranchMessage>) -> Vec<CitedMessage> {
    let said = items.into_iter().filter_map(|item| {
        let message = item.entry.message().ok().filter(|message| message.in_model_context())?;
        Some(CitedMessage { id: item.entry.id().clone(), message, pinned: false })
    });
    said.collect()
}

/// Returns the receipt of a compaction that ctx made.
#[must_use]
pub fn receipt_of(compaction: &StoredCompaction) -> Option<Receipt> {
    let details = serde_json::from_str(compaction.details.as_ref()?.as_str()).ok()?;
    Some(Details::from_json(&details)?.receipt)
}

impl<'a> SummaryText<'a> {
    /// Returns a stored summary; `said` are the messages of its branch.
    #[must_use]
    pub fn of(stored: &'a StoredCompaction, said: &'a [CitedMessage]) -> Self {
        let place = |id: &Option<EntryId>| said.iter().position(|one| Some(&one.id) == id.as_ref());
        let end = place(&stored.covered.last).map(|last| last + 1);
        let end = end.or_else(|| place(&stored.first_kept_entry_id)).unwrap_or(said.len());
        Self {
            compaction: stored.id.clone(),
            text: &stored.summary,
            receipt: receipt_of(stored),
            originals: said.slice(..end),
        }
    }

    /// Returns where the lines that contain these words come from; see [`words_of`].
    #[must_use]
    pub fn origins(&self, asked: &str) -> Vec<LineOrigin> {
        let wanted = folded(asked).0;
        let lines =
            lines(self.text).into_iter().map(|(at, line)| (at, folded(&bare(&line)).0, line));
        let lines = lines.filter(|(_, words, _)| occurrence(words, &wanted).is_some());
        let mut lines: Vec<_> = lines.collect();
        if lines.iter().any(|(_, words, _)| *words == wanted) {
            lines.retain(|(_, words, _)| *words == wanted);
        }
        if lines.is_empty() {
            return Vec::new();
        }
        let facts = all_facts(FactLedger::of(self.originals).facts());
        let lines = lines.into_iter().take(MOST);
        lines.map(|(at, _, line)| self.origin(at, line, asked, &facts)).collect()
    }

    fn origin(&self, at: usize, line: String, asked: &str, facts: &[RequiredFact]) -> LineOrigin {
        let cited = citations(&line).into_iter().flat_map(|cited| cited.ids);
        let cited: Vec<&EntryId> = cited.filter_map(|id| Some(&self.cited(id)?.id)).collect();
        let facts = self.stated(at, &line, asked, facts, &cited);
        let mut seen = HashSet::new();
        let ids = facts.iter().map(|stated| &stated.fact.entry).chain(cited);
        let ids: Vec<&EntryId> = ids.filter(|id| seen.insert(*id)).collect();
        let of = |id: &EntryId| {
            let own = |is_passage: bool| {
                let own = facts
                    .iter()
                    .map(|stated| &stated.fact)
                    .filter(move |fact| fact.entry == *id && fact.kind.is_passage() == is_passage);
                own.map(|fact| fact.text.clone())
            };
            let mut words = without_label(asked);
            words.extend(own(true).chain(clauses(asked)));
            let names = own(false).chain([bare(&line)]).collect();
            Some(SourceMessage::of(self.cited(id)?, &[words, names]))
        };
        let mut sources: Vec<SourceMessage> = ids.into_iter().filter_map(of).collect();
        let mut unsupported = Vec::new();
        let is_supported = sources.iter().any(|source| source.support != Support::Cited);
        if !(is_supported && covers(&facts, asked)) {
            let (searched, missing) = search(self.originals, asked);
            unsupported = missing;
            sources.retain(|source| searched.iter().all(|known| known.entry != source.entry));
            sources.splice(0..0, searched);
        }
        LineOrigin {
            compaction: Some(self.compaction.clone()),
            number: at + 1,
            line: line.trim().to_owned(),
            facts,
            sources,
            unsupported,
            ..LineOrigin::default()
        }
    }

    /// Returns the facts that the line at this index states, of these only those that `asked`, a part
    /// of the line, states, if there are any.
    fn stated(
        &self,
        at: usize,
        line: &str,
        asked: &str,
        facts: &[RequiredFact],
        cited: &[&EntryId],
    ) -> Vec<StatedFact> {
        let repaired = self.receipt.as_ref().map(|receipt| &receipt.audit.repaired_lines);
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        let is_repaired = repaired.is_some_and(|lines| lines.contains(&at));
        let wanted = folded(asked).0;
        let in_line = find_facts(line, self.text, facts);
        let in_asked = find_facts(asked, self.text, facts);
        let found = facts.iter().zip(in_line).zip(in_asked);
        let stated = found.filter_map(|((fact, in_line), in_asked)| {
            let state = match in_line?.is_exact {
                _ if is_repaired => FactState::Repaired,
                true => FactState::Kept,
                false => FactState::Reworded,
            };
            let is_asked = in_asked.is_some() || folded(&fact.text).0.contains(&wanted);
            Some((is_asked, StatedFact { fact: fact.clone(), state, superseded_by: None }))
        });
        let mut stated: Vec<(bool, StatedFact)> = stated.collect();
        if stated.iter().any(|(is_asked, _)| *is_asked) {
            stated.retain(|(is_asked, _)| *is_asked);
        }
        let mut stated: Vec<StatedFact> = stated.into_iter().map(|(_, stated)| stated).collect();
        // `src/` is not stated by a line that names `src/main.rs`.
        let names: Vec<String> = stated.iter().map(|one| one.fact.text.clone()).collect();
        stated.retain(|StatedFact { fact, .. }| {
            let is_part = |name: &String| *name != fact.text && name.contains(fact.text.as_str());
            fact.kind.is_passage() || !names.iter().any(is_part)
        });
        // The same words may be in messages that the line does not come from.
        let is_cited = |stated: &StatedFact| cited.contains(&&stated.fact.entry);
        if stated.iter().any(is_cited) {
            stated.retain(|one| is_cited(one) || one.state != FactState::Reworded);
        }
        stated
    }

    /// Returns the message with this id, or with an id that begins like this.
    fn cited(&self, id: &str) -> Option<&CitedMessage> {
        self.originals.iter().find(|one| one.id.starts_with(id))
    }
}

/// Returns where required facts with these words are. `covered` are the messages that the summary in
/// force stands for.
fn fact_origins(
    asked: &str,
    now: &LedgerFacts,
    summaries: &[SummaryText<'_>],
    (covered, kept): (&[CitedMessage], &[CitedMessage]),
) -> Vec<LineOrigin> {
    let wanted = folded(asked).0;
    let facts = all_facts(now.clone()).into_iter().map(|fact| (folded(&fact.text).0, fact));
    let mut facts: Vec<_> = facts
        .filter(|(text, _)| {
            text.contains(&wanted) || (wanted.contains(text) && text.len() * 2 > wanted.len())
        })
        .collect();
    if facts.iter().any(|(text, _)| *text == wanted) {
        facts.retain(|(text, _)| *text == wanted);
    }
    let mut origins: Vec<LineOrigin> = Vec::new();
    for (_, fact) in facts.into_iter().take(MOST) {
        let before = origins.len();
        for summary in summaries.iter().filter(|one| one.cited(&fact.entry).is_some()) {
            let one = [fact.clone()];
            let found = find_facts(summary.text, summary.text, &one).pop().flatten();
            let line =
                found.and_then(|found| Some((found.line, summary.text.lines().nth(found.line)?)));
            origins.extend(
                line.map(|(at, line)| summary.origin(at, line.to_owned(), &fact.text, &one)),
            );
        }
        let message = |id: &EntryId| covered.iter().chain(kept).find(|one| one.id == *id);
        if origins.len() == before
            && let Some(message) = message(&fact.entry)
        {
            let is_covered = covered.iter().any(|one| one.id == fact.entry);
            let state = if is_covered { FactState::Lost } else { FactState::InContext };
            let line = fact.text.clone();
            let sources = vec![SourceMessage::of(message, &[vec![line.clone()]])];
            let facts = vec![StatedFact { fact, state, superseded_by: None }];
            origins.push(LineOrigin { line, facts, sources, ..LineOrigin::default() });
        }
    }
    origins
}

fn all_facts(known: LedgerFacts) -> Vec<RequiredFact> {
    let superseded = known.superseded.into_iter().map(|old| old.fact);
    known.required.into_iter().chain(superseded).collect()
}

/// Finds the first message with these words, else the first that states them otherwise, else the first
/// for each name of a list or clause. Returns the parts that no message contains as well.
fn search(said: &[CitedMessage], words: &str) -> (Vec<SourceMessage>, Vec<String>) {
    let needles = without_label(words);
    let first = |support: Support, needles: &[String]| {
        let mut found = said.iter().map(|one| SourceMessage::find(one, needles, support));
        found.find_map(|found| found)
    };
    let whole = first(Support::Verbatim, &needles);
    if let Some(whole) = whole.or_else(|| first(Support::Reworded, &needles)) {
        return (vec![whole], Vec::new());
    }
    let list = needles.last().map_or(words, String::as_str);
    let names = list.split(", ").map(|name| name.trim_matches(['`', '.']).to_owned());
    let mut parts: Vec<String> = names.collect();
    if parts.iter().any(|name| name.contains(char::is_whitespace)) {
        parts = clauses(words).collect();
    }
    let (mut sources, mut missing) = (Vec::<SourceMessage>::new(), Vec::new());
    for part in parts {
        match first(Support::Verbatim, std::slice::from_ref(&part)) {
            Some(found) if sources.iter().any(|known| known.entry == found.entry) => {}
            Some(found) => sources.push(found),
            None => missing.push(part),
        }
    }
    if sources.is_empty() {
        missing = vec![words.to_owned()];
    }
    (sources, missing)
}

/// Whether facts account for most words of a text.
fn covers(facts: &[StatedFact], asked: &str) -> bool {
    let asked = without_label(asked).pop().unwrap_or_default();
    let words = gist(&asked).words;
    let stated: HashSet<u64> =
        facts.iter().flat_map(|stated| gist(&stated.fact.text).words).collect();
    let known = words.iter().filter(|word| stated.contains(word)).count();
    known * 100 >= words.len() * ENOUGH
}

/// Returns the lines of a summary with their indices, without headings. Indented lines belong to the
/// line before.
fn lines(summary: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    for (at, line) in summary.lines().enumerate() {
        let continues = line.starts_with([' ', '\t']) && !line.trim_start().starts_with(['-', '*']);
        match lines.last_mut().filter(|_| continues) {
            Some((_, before)) => before.extend(["\n", line]),
            None => lines.push((at, line.to_owned())),
        }
    }
    lines.retain(|(_, line)| !line.starts_with('#'));
    lines
}

fn bare(line: &str) -> String {
    without_citations(line).trim_start_matches(['-', '*', '•', '#', ' ']).trim_end().to_owned()
}

/// Returns the words, and those after a label: `User: `, `Names: `.
fn without_label(words: &str) -> Vec<String> {
    let rest = words.split_once(": ").map(|(_, rest)| rest.to_owned());
    std::iter::once(words.to_owned()).chain(rest).collect()
}

/// Returns the clauses of a text that have at least three words.
fn clauses(words: &str) -> impl Iterator<Item = String> {
    let clauses = words.split("; ").flat_map(|clause| clause.split(" → "));
    let clauses = clauses.map(|clause| without_label(clause).pop().unwrap_or_default());
    clauses.filter(|clause| clause.split_whitespace().count() >= 3)
}
