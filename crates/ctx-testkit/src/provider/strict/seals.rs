//! What the provider signed, and when.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::super::api::Api;
use super::super::speech::Speech;

/// What stands for the words of a proof that holds them itself.
pub(super) const SEALED: &str = "";

/// The proofs that a provider gave of what its models thought, and the ids of what they did.
#[derive(Clone, Debug, Default)]
pub struct Seals {
    issued: HashMap<String, Issued>,
    trusted: HashSet<String>,
    /// Of calls and items: in which answer they came.
    answers: HashMap<String, usize>,
    /// Answers that began with reasoning.
    reasoned: HashSet<usize>,
}

#[derive(Clone, Debug)]
struct Issued {
    answer: usize,
    /// What was signed.
    words: String,
}

/// What a proof is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Worth {
    /// It proves these words, of that answer.
    Proves(usize),
    /// It is taken without a question.
    Trusted,
    /// It proves other words.
    Stale,
    /// Nobody here gave it.
    Unknown,
}

impl Seals {
    /// Takes that proof for any words.
    #[must_use]
    pub fn trusting(mut self, proof: impl Into<String>) -> Self {
        self.trusted.insert(proof.into());
        self
    }

    /// Signs what an answer holds as that API does, and remembers it.
    pub(in super::super) fn seal(&mut self, api: Api, speech: &mut Speech) {
        let number = speech.number;
        let thinks = !speech.thinking.is_empty();
        speech.signature = match api {
            Api::Messages if thinks => Some(self.sign("EqQBCgIYAhIM", number, &speech.thinking)),
            // What is sealed is not shown: it proves itself.
            Api::Responses if thinks => Some(self.sign("gAAAAA", number, SEALED)),
            Api::Gemini => speech.calls.first().map(|call| self.sign("CrQB", number, &call.name)),
            _ => None,
        };
        self.answered(speech);
    }

    /// Signs words of an answer; the same words of the same answer get the same proof.
    fn sign(&mut self, prefix: &str, answer: usize, words: &str) -> String {
        let mut hasher = DefaultHasher::new();
        (answer, words).hash(&mut hasher);
        // Long enough that nobody takes it for a word.
        let proof = format!("{prefix}{:016x}{answer:08x}", hasher.finish());
        let issued = Issued { answer, words: words.to_owned() };
        self.issued.insert(proof.clone(), issued);
        proof
    }

    /// Remembers which calls and items an answer holds.
    fn answered(&mut self, speech: &Speech) {
        let number = speech.number;
        if !speech.thinking.is_empty() {
            self.reasoned.insert(number);
        }
        let mut know = |id: String| self.answers.insert(id, number);
        know(format!("rs_{number}"));
        know(format!("msg_{number}"));
        for n in 0..speech.calls.len() {
            for id in [format!("toolu_{number}_{n}"), format!("fc_{number}_{n}")] {
                know(id);
            }
        }
    }

    pub(super) fn worth(&self, proof: &str, words: &str) -> Worth {
        match self.issued.get(proof) {
            _ if self.trusted.contains(proof) => Worth::Trusted,
            None => Worth::Unknown,
            Some(issued) if issued.words == words => Worth::Proves(issued.answer),
            Some(_) => Worth::Stale,
        }
    }

    /// The answer that a call or an item came in.
    pub(super) fn answer_of(&self, id: &str) -> Option<usize> {
        self.answers.get(id).copied()
    }

    pub(super) fn has_reasoned(&self, answer: usize) -> bool {
        self.reasoned.contains(&answer)
    }
}
