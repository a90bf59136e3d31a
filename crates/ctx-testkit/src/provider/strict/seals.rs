//! The signatures of the provider.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::super::api::Api;
use super::super::speech::Speech;

/// Replaces the text for a signature that contains its text.
pub(super) const SEALED: &str = "";

/// The signatures that a provider gave for thinking, and the ids of calls and items.
#[derive(Clone, Debug, Default)]
pub struct Seals {
    issued: HashMap<String, Issued>,
    trusted: HashSet<String>,
    /// For each call or item, its answer.
    answers: HashMap<String, usize>,
    /// Answers that began with reasoning.
    reasoned: HashSet<usize>,
}

#[derive(Clone, Debug)]
struct Issued {
    answer: usize,
    /// The signed text.
    words: String,
}

/// The validity of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Validity {
    /// It is valid for this text, of that answer.
    Proves(usize),
    /// It is accepted without a check.
    Trusted,
    /// It was given for another text.
    Stale,
    /// It was not given by this provider.
    Unknown,
}

impl Seals {
    /// Accepts that signature for any text.
    pub fn trusting(mut self, proof: impl Into<String>) -> Self {
        self.trusted.insert(proof.into());
        self
    }

    /// Signs an answer as that API does, and records the signature.
    pub(in super::super) fn seal(&mut self, api: Api, speech: &mut Speech) {
        let number = speech.number;
        let thinks = !speech.thinking.is_empty();
        speech.signature = match api {
            Api::Messages if thinks => Some(self.sign("EqQBCgIYAhIM", number, &speech.thinking)),
            // Encrypted content is not shown: it is its own signature.
            Api::Responses if thinks => Some(self.sign("gAAAAA", number, SEALED)),
            Api::Gemini => speech.calls.first().map(|call| self.sign("CrQB", number, &call.name)),
            _ => None,
        };
        self.answered(speech);
    }

    /// Signs a text of an answer; the same text of the same answer gets the same signature.
    fn sign(&mut self, prefix: &str, answer: usize, words: &str) -> String {
        let mut hasher = DefaultHasher::new();
        (answer, words).hash(&mut hasher);
        // Long enough not to be mistaken for a word.
        let proof = format!("{prefix}{:016x}{answer:08x}", hasher.finish());
        let issued = Issued { answer, words: words.to_owned() };
        self.issued.insert(proof.clone(), issued);
        proof
    }

    /// Records the calls and items of an answer.
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

    pub(super) fn validity(&self, proof: &str, words: &str) -> Validity {
        match self.issued.get(proof) {
            _ if self.trusted.contains(proof) => Validity::Trusted,
            None => Validity::Unknown,
            Some(issued) if issued.words == words => Validity::Proves(issued.answer),
            Some(_) => Validity::Stale,
        }
    }

    /// Returns the answer that contained a call or an item.
    pub(super) fn answer_of(&self, id: &str) -> Option<usize> {
        self.answers.get(id).copied()
    }

    pub(super) fn has_reasoned(&self, answer: usize) -> bool {
        self.reasoned.contains(&answer)
    }
}
