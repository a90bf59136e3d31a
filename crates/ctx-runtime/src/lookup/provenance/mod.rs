//! Finds the messages that a line of a summary, a required fact or a fact of memory comes from.

mod quote;

use std::collections::HashSet;
use std::sync::Arc;

use ctx_core::text::Slice;
use ctx_core::{Entry, EntryId, Error, ErrorKind, Result};
use ctx_facts::{
    CitedMessage, FactLedger, LedgerFacts, RequiredFact, citations, without_citations,
};
use ctx_layers::compaction::{Details, Receipt, find_facts};
use ctx_session::{StoredCompaction, Transcript};
use ctx_text::gist;
use serde::Serialize;

pub(super) use quote::folded;
use quote::occurrence;
pub use quote::{SourceMessage, Support};

/// Maximum number of lines of one summary that are returned for a text.
pub const MOST: usize = 3;

/// The percentage of a text's words that its facts must contain to account for it.
const ENOUGH: usize = 70;

/// A line of a summary, or a text that no summary contains, and where it comes from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LineOrigin {
    /// The compaction; `None` if no summary contains the text.
    pub compaction: Option<EntryId>,
    /// Whether the compaction was undone.
    pub undone: bool,
    /// The number of the line in the summary, from 1.
    pub number: usize,
    /// The line, or the text.
    pub line: String,
    /// The required facts that it states, most important first.
    pub facts: Vec<StatedFact>,
    /// The messages that it comes from. Without any, nothing in the originals supports the line.
    pub sources: Vec<SourceMessage>,
    /// The parts of the line that no message contains.
    pub unsupported: Vec<String>,
}

/// A required fact that a line states.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatedFact {
    /// The fact, with the entry that states it last.
    #[serde(flatten)]
    pub fact: RequiredFact,
    /// What became of it.
    pub state: FactState,
    /// The entry that replaced or withdrew it.
    pub superseded_by: Option<EntryId>,
    /// The words of that entry.
    pub superseded_with: Option<String>,
}

/// What became of a required fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum FactState {
    /// The summary has it in the same words.
    Kept,
    /// The summary has it in other words.
    Reworded,
    /// Repair added it to the summary.
    Repaired,
    /// No summary has it.
    Lost,
}

/// A summary and the messages that it replaces, in all rounds.
pub struct SummaryText<'a> {
    /// The compaction, if there is one.
    pub compaction: Option<&'a StoredCompaction>,
    /// The text.
    pub text: &'a str,
    /// The messages, those of earlier summaries included, oldest first.
    pub originals: &'a [CitedMessage],
}

/// The facts of the messages that summaries stand for. A message is read once, if the summaries of
/// a session come in their order.
#[derive(Debug, Default)]
pub struct SummaryFacts {
    ledger: FactLedger,
    known: Arc<LedgerFacts>,
}

impl SummaryFacts {
    /// Returns the facts of these messages, the first ones of the session.
    fn of(&mut self, originals: &[CitedMessage]) -> Arc<LedgerFacts> {
        if originals.len() < self.ledger.messages() {
            *self = Self::default();
        }
        let fresh = originals.slice(self.ledger.messages()..);
        if !fresh.is_empty() {
            fresh.iter().for_each(|one| self.ledger.read(one));
            self.known = Arc::new(self.ledger.facts());
        }
        self.known.clone()
    }
}

/// Returns where a text comes from: the lines of summaries that contain it or state the fact with
/// these words, newest compaction first; else the messages that contain it.
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`] for a text without words, and errors from reading the transcript.
pub fn line_origins(transcript: &Transcript, text: &str) -> Result<Vec<LineOrigin>> {
    let asked = bare(text);
    if !asked.contains(char::is_alphanumeric) {
        let error = Error::new(ErrorKind::InvalidInput, "the text contains no words");
        return Err(error.hint("give a line of a summary; `ctx expand` takes citations"));
    }
    let items = transcript.messages_to(None)?;
    let said = cited_messages(items.iter().map(|item| &*item.entry));
    let list = transcript.compaction_list(None)?;
    let mut facts = SummaryFacts::default();
    // The ledger of the facts goes on from one summary to the next.
    let of_summary =
        |one: &StoredCompaction| SummaryText::of(one, &said).origins(&asked, &mut facts);
    let by_summary: Vec<Vec<LineOrigin>> = list.iter().map(of_summary).collect();
    let mut found: Vec<LineOrigin> = by_summary.into_iter().rev().flatten().collect();
    if found.is_empty() {
        let whole = SummaryText { compaction: None, text: &asked, originals: &said };
        found = whole.origins(&asked, &mut facts);
        found.retain(|origin| !origin.sources.is_empty());
    }
    let superseded = &facts.of(&said).superseded;
    for origin in &mut found {
        for stated in &mut origin.facts {
            let is_it =
                |old: &RequiredFact| (old.kind, &old.text) == (stated.fact.kind, &stated.fact.text);
            let later = superseded.iter().find(|old| is_it(&old.fact));
            stated.superseded_by = later.map(|old| old.entry.clone());
            stated.superseded_with = later.map(|old| old.by.clone());
        }
        origin.sources.iter_mut().for_each(|source| source.find_place(transcript));
    }
    Ok(found)
}

/// Returns the messages of entries, without those that are never sent to a model.
pub fn cited_messages<'e>(entries: impl Iterator<Item = &'e Entry>) -> Vec<CitedMessage> {
    entries.filter_map(CitedMessage::of).collect()
}

/// Returns the receipt of a compaction that ctx made.
pub fn receipt_of(compaction: &StoredCompaction) -> Option<Receipt> {
    let details = serde_json::from_str(compaction.details.as_ref()?.as_str()).ok()?;
    Some(Details::from_json(&details)?.receipt)
}

impl<'a> SummaryText<'a> {
    /// Returns a stored summary; `said` are the messages of its branch.
    pub fn of(stored: &'a StoredCompaction, said: &'a [CitedMessage]) -> Self {
        let place = |id: &Option<EntryId>| said.iter().position(|one| Some(&one.id) == id.as_ref());
        let end = place(&stored.covered.last).map(|last| last + 1);
        let end = end.or_else(|| place(&stored.first_kept_entry_id)).unwrap_or(said.len());
        Self { compaction: Some(stored), text: &stored.summary, originals: said.slice(..end) }
    }

    /// Returns where the lines with these words come from, or else the lines that state the facts
    /// with these words. `facts` are those of the session.
    pub fn origins(&self, asked: &str, facts: &mut SummaryFacts) -> Vec<LineOrigin> {
        let facts = facts.of(self.originals);
        let superseded = facts.superseded.iter().map(|old| &old.fact);
        let required: Vec<RequiredFact> =
            facts.required.iter().chain(superseded).cloned().collect();
        let asked = &*bare(asked);
        let wanted = folded(asked).0;
        let lines: Vec<_> = lines(self.text)
            .into_iter()
            .map(|(at, line)| (at, folded(&bare(&line)).0, line))
            .collect();
        let with = |fits: &dyn Fn(usize, &str) -> bool| -> Vec<LineOrigin> {
            let found = lines.iter().filter(|(at, words, _)| fits(*at, words)).take(MOST);
            found
                .map(|(at, words, line)| self.origin(*at, line, asked, *words == wanted, &required))
                .collect()
        };
        let mut found = with(&|_, words| words == wanted);
        if found.is_empty() {
            found = with(&|_, words| occurrence(words, &wanted).is_some());
        }
        if found.is_empty() {
            let facts = required.iter().zip(find_facts(self.text, self.text, &required));
            let own = facts.filter(|(fact, _)| folded(&fact.text).0 == wanted);
            let stating: HashSet<usize> = own.filter_map(|(_, found)| Some(found?.line)).collect();
            found = with(&|at, _| stating.contains(&at));
        }
        found
    }

    fn origin(
        &self,
        at: usize,
        line: &str,
        asked: &str,
        is_whole: bool,
        facts: &[RequiredFact],
    ) -> LineOrigin {
        let cited = citations(line).into_iter().flat_map(|cited| cited.ids);
        let cited: Vec<&EntryId> = cited.filter_map(|id| Some(&self.cited(id)?.id)).collect();
        let wanted = (!is_whole).then(|| folded(asked).0);
        let facts = self.stated(at, line, wanted.as_deref(), facts, &cited);
        let mut seen = HashSet::new();
        let ids = facts.iter().map(|stated| &stated.fact.entry).chain(cited);
        let ids: Vec<&EntryId> = ids.filter(|id| seen.insert(*id)).collect();
        let of = |id: &EntryId| {
            let own = facts.iter().filter(|stated| stated.fact.entry == *id);
            let own = own.map(|stated| stated.fact.text.clone()).collect();
            let words = without_label(asked).into_iter().chain(clauses(asked)).collect();
            Some(SourceMessage::of(self.cited(id)?, &[words, own, vec![bare(line)]]))
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
        // The other citations of the line are for its other parts.
        if !is_whole && sources.iter().any(|source| source.support != Support::Cited) {
            sources.retain(|source| source.support != Support::Cited);
        }
        LineOrigin {
            compaction: self.compaction.map(|stored| stored.id.clone()),
            undone: self.compaction.is_some_and(|stored| stored.undone),
            number: at + 1,
            line: line.trim().to_owned(),
            facts,
            sources,
            unsupported,
        }
    }

    /// Returns the facts that a line states, of these only those related to `wanted`, a part of the
    /// line, if there are any.
    fn stated(
        &self,
        at: usize,
        line: &str,
        wanted: Option<&str>,
        facts: &[RequiredFact],
        cited: &[&EntryId],
    ) -> Vec<StatedFact> {
        let receipt = self.compaction.and_then(receipt_of);
        let is_repaired = receipt.is_some_and(|receipt| {
            u32::try_from(at).is_ok_and(|at| receipt.audit.repaired_lines.contains(&at))
        });
        let found = facts.iter().zip(find_facts(line, self.text, facts));
        let stated = found.filter_map(|(fact, found)| {
            let state = match found?.is_exact {
                _ if self.compaction.is_none() => FactState::Lost,
                _ if is_repaired => FactState::Repaired,
                true => FactState::Kept,
                false => FactState::Reworded,
            };
            let fact = fact.clone();
            Some(StatedFact { fact, state, superseded_by: None, superseded_with: None })
        });
        let mut stated: Vec<StatedFact> = stated.collect();
        let is_asked = |stated: &StatedFact| {
            let words = folded(&stated.fact.text).0;
            wanted.is_some_and(|wanted| wanted.contains(&words) || words.contains(wanted))
        };
        // The same words may be in messages that the line does not come from.
        let is_cited = |stated: &StatedFact| {
            cited.contains(&&stated.fact.entry)
                || (!cited.is_empty() && stated.state != FactState::Reworded)
        };
        // `src/` is not stated by a line that names `src/main.rs`.
        let names: Vec<String> = stated.iter().map(|one| one.fact.text.clone()).collect();
        let is_whole = |StatedFact { fact, .. }: &StatedFact| {
            let is_part = |name: &String| *name != fact.text && name.contains(fact.text.as_str());
            fact.kind.is_passage() || !names.iter().any(is_part)
        };
        for fits in [&is_asked as &dyn Fn(&StatedFact) -> bool, &is_cited, &is_whole] {
            if stated.iter().any(fits) {
                stated.retain(fits);
            }
        }
        stated
    }

    /// Returns the message with this id, or with an id that begins like this.
    fn cited(&self, id: &str) -> Option<&CitedMessage> {
        self.originals.iter().find(|one| one.id.starts_with(id))
    }
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
    without_citations(line).trim_start_matches(['-', '*', '•', '#', ' ']).to_owned()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn session(said: &[&str], summary: &str) -> Transcript {
        let mut lines = vec![r#"{"type":"session","version":3,"id":"s","cwd":"/"}"#.to_owned()];
        let mut parent = serde_json::Value::Null;
        let mut add = |id: &str, mut entry: serde_json::Value| {
            entry["id"] = id.into();
            entry["parentId"] = std::mem::replace(&mut parent, id.into());
            lines.push(entry.to_string());
        };
        for (n, text) in said.iter().enumerate() {
            let message = serde_json::json!({ "role": "user", "content": text });
            add(&format!("m{n}"), serde_json::json!({ "type": "message", "message": message }));
        }
        let kept = format!("m{}", said.len() - 1);
        let compaction = serde_json::json!({
            "type": "compaction", "summary": summary, "firstKeptEntryId": kept, "tokensBefore": 9,
        });
        add("c", compaction);
        Transcript::from_bytes(lines.join("\n").into_bytes()).unwrap()
    }

    #[test]
    fn a_fact_is_found_reworded_superseded_or_lost() {
        let said = [
            "We use PostgreSQL 14 for the billing database.",
            "Never push to the main branch without a review.",
            "The release notes must mention Ada Lovelace.",
            "We use PostgreSQL 16 for the billing database now, not PostgreSQL 14.",
            "go on",
        ];
        let summary = "- We use PostgreSQL 14 for the billing database. [e:m0]\n\
                       - User: never push to main branch without review";
        let transcript = session(&said, summary);
        let one = |asked: &str| line_origins(&transcript, asked).unwrap().remove(0);
        let old = one("we use PostgreSQL 14 for the billing database");
        assert_eq!((&*old.sources[0].entry, old.sources[0].support), ("m0", Support::Verbatim));
        let later: Vec<_> = old.facts.iter().filter_map(|one| one.superseded_by.clone()).collect();
        assert_eq!(later, [EntryId::from("m3")], "{old:?}");
        let reworded = one(said[1]);
        assert_eq!((reworded.number, &*reworded.sources[0].entry), (2, "m1"), "{reworded:?}");
        assert!(reworded.facts.iter().any(|one| one.state == FactState::Reworded), "{reworded:?}");
        let lost = one(said[2]);
        assert_eq!((lost.compaction, &*lost.sources[0].entry), (None, "m2"));
        assert!(
            lost.facts.iter().all(|one| one.state == FactState::Lost) && !lost.facts.is_empty()
        );
        assert_eq!(line_origins(&transcript, "Grace Hopper").unwrap(), []);
    }

    #[test]
    fn each_name_of_a_list_and_each_clause_is_searched() {
        let said = ["Alpha and beta are done. The tests pass on Linux.", "see gamma", "go on"];
        let summary =
            "- Names: `beta`, `gamma`, `delta`\n- the tests pass on Linux; the moon is a cheese";
        let transcript = session(&said, summary);
        let of = |asked: &str| {
            let origin = line_origins(&transcript, asked).unwrap().remove(0);
            let entries: Vec<_> = origin.sources.iter().map(|one| one.entry.to_string()).collect();
            (entries, origin.unsupported)
        };
        let (entries, missing) = of("Names: `beta`, `gamma`, `delta`");
        assert_eq!((entries, missing), (vec!["m0".into(), "m1".into()], vec!["delta".into()]));
        let (entries, missing) = of("the tests pass on Linux; the moon is a cheese");
        assert_eq!(
            (entries, missing),
            (vec!["m0".to_owned()], vec!["the moon is a cheese".into()])
        );
    }
}
