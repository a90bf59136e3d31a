//! The report of a measurement.

use std::collections::BTreeMap;

use serde::Serialize;

use super::metrics::RankingScores;

/// The numbers of first turns at which recall is measured.
pub(super) const CUTS: [usize; 5] = [1, 5, 10, 20, 50];

/// Recall among the first 1, 5, 10, 20 and 50 turns, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct AtCuts {
    /// Among the first.
    #[serde(rename = "1")]
    pub at1: f64,
    /// Among the first 5.
    #[serde(rename = "5")]
    pub at5: f64,
    /// Among the first 10.
    #[serde(rename = "10")]
    pub at10: f64,
    /// Among the first 20.
    #[serde(rename = "20")]
    pub at20: f64,
    /// Among the first 50.
    #[serde(rename = "50")]
    pub at50: f64,
}

/// The metrics of a set of questions. Shares are means over the questions, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CategoryReport {
    /// The number of questions.
    pub questions: usize,
    /// The share of the answering turns that are among the first.
    pub recall: AtCuts,
    /// The mean reciprocal rank of the first answering turn, within the first 200.
    pub mrr: f64,
    /// Normalised discounted cumulative gain of the first 10.
    pub ndcg10: f64,
    /// The share of the answering turns that are in a recall block of 4,000 tokens.
    pub coverage4000: f64,
    /// The recall of tantivy's own BM25 over the same turns.
    pub tantivy: AtCuts,
    /// The recall of the BM25 of SQLite's FTS5 over the same turns.
    pub fts5: AtCuts,
    /// Of calls repeated in recorded sessions: the share with the same result as before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unchanged: Option<f64>,
    /// The share with the same result as before, and that result among the first 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered: Option<f64>,
}

/// The measurements over a dataset.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecallReport {
    /// The format of the dataset.
    pub dataset: &'static str,
    /// The embedder of the vectors.
    pub embedder: String,
    /// The number of conversations.
    pub conversations: usize,
    /// The total number of turns.
    pub turns: usize,
    /// All questions that have an answer. In LoCoMo, `adversarial` ones have none.
    #[serde(flatten)]
    pub all: CategoryReport,
    /// Questions skipped because no answering turn is known.
    pub skipped: usize,
    /// References to turns that were repaired because their meaning is clear.
    pub evidence_repaired: usize,
    /// References that match no turn.
    pub evidence_dropped: usize,
    /// The same by category, including adversarial questions.
    pub by_category: BTreeMap<String, CategoryReport>,
    /// R@10 of each conversation by itself, over the same questions as `all`.
    pub recall10_by_conversation: BTreeMap<String, f64>,
    /// Warnings of the memory.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

/// Sums for computing means.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    questions: usize,
    repeated: usize,
    worth: RankingScores,
}

impl Sums {
    pub(super) fn add(&mut self, worth: &RankingScores) {
        self.questions += 1;
        self.repeated += usize::from(worth.repeated.is_some());
        let sum = &mut self.worth;
        let add = |sums: &mut [f64; CUTS.len()], one: [f64; CUTS.len()]| {
            sums.iter_mut().zip(one).for_each(|(sum, one)| *sum += one);
        };
        add(&mut sum.recall, worth.recall);
        sum.peers.iter_mut().zip(worth.peers).for_each(|(sums, one)| add(sums, one));
        sum.reciprocal += worth.reciprocal;
        sum.ndcg10 += worth.ndcg10;
        sum.coverage += worth.coverage;
        let [unchanged, answered] = sum.repeated.get_or_insert_default();
        let one = worth.repeated.unwrap_or_default();
        *unchanged += one[0];
        *answered += one[1];
    }

    pub(super) fn report(&self) -> CategoryReport {
        let share = |sum: f64, of: usize| if of == 0 { 0.0 } else { sum / of as f64 };
        let mean = |sum: f64| share(sum, self.questions);
        let cuts = |sums: [f64; CUTS.len()]| {
            let [at1, at5, at10, at20, at50] = sums.map(mean);
            AtCuts { at1, at5, at10, at20, at50 }
        };
        let [tantivy, fts5] = self.worth.peers.map(cuts);
        let repeated = self.worth.repeated.filter(|_| self.repeated > 0);
        let repeated = repeated.map(|sums| sums.map(|sum| share(sum, self.repeated)));
        CategoryReport {
            questions: self.questions,
            recall: cuts(self.worth.recall),
            mrr: mean(self.worth.reciprocal),
            ndcg10: mean(self.worth.ndcg10),
            coverage4000: mean(self.worth.coverage),
            tantivy,
            fts5,
            unchanged: repeated.map(|[unchanged, _]| unchanged),
            answered: repeated.map(|[_, answered]| answered),
        }
    }
}
