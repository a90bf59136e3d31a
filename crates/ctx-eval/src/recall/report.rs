//! What was measured.

use std::collections::BTreeMap;

use serde::Serialize;

use super::metrics::Worth;

/// How many of the first turns are looked at.
pub(super) const CUTS: [usize; 4] = [5, 10, 20, 50];

/// Recall among the first 5, 10, 20 and 50 turns, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct AtCuts {
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

/// How well a set of questions is served. Shares are means over the questions, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CategoryReport {
    /// How many questions.
    pub questions: usize,
    /// The share of the turns that answer a question which are among the first.
    pub recall: AtCuts,
    /// One by the rank of the first turn that answers, within the first 200.
    pub mrr: f64,
    /// Normalised discounted cumulative gain of the first 10.
    pub ndcg10: f64,
    /// The share of the turns that answer which are in a recall block of 4,000 tokens.
    pub coverage4000: f64,
}

/// What was measured over a dataset.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecallReport {
    /// The form of the dataset.
    pub dataset: &'static str,
    /// What made the vectors.
    pub embedder: String,
    /// How many conversations.
    pub conversations: usize,
    /// How many turns they have together.
    pub turns: usize,
    /// All questions that have an answer. In LoCoMo, `adversarial` ones have none.
    #[serde(flatten)]
    pub all: CategoryReport,
    /// Questions left out because no turn is known that answers them.
    pub skipped: usize,
    /// References to turns that were repaired because it is plain what they mean.
    pub evidence_repaired: usize,
    /// References that are no turn.
    pub evidence_dropped: usize,
    /// The same by category, adversarial questions too.
    pub by_category: BTreeMap<String, CategoryReport>,
    /// R@10 of each conversation by itself, over the same questions as `all`.
    pub recall10_by_conversation: BTreeMap<String, f64>,
}

/// Sums on their way to means.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    questions: usize,
    worth: Worth,
}

impl Sums {
    pub(super) fn add(&mut self, worth: &Worth) {
        self.questions += 1;
        for (sum, one) in self.worth.recall.iter_mut().zip(worth.recall) {
            *sum += one;
        }
        self.worth.reciprocal += worth.reciprocal;
        self.worth.ndcg10 += worth.ndcg10;
        self.worth.coverage += worth.coverage;
    }

    pub(super) fn report(&self) -> CategoryReport {
        let mean = |sum: f64| if self.questions == 0 { 0.0 } else { sum / self.questions as f64 };
        let [at5, at10, at20, at50] = self.worth.recall.map(mean);
        CategoryReport {
            questions: self.questions,
            recall: AtCuts { at5, at10, at20, at50 },
            mrr: mean(self.worth.reciprocal),
            ndcg10: mean(self.worth.ndcg10),
            coverage4000: mean(self.worth.coverage),
        }
    }
}
