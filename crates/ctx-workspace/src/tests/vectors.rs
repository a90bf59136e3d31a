//! Chunks with vectors.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ctx_core::{Embedder, ErrorKind, Result, Timer, WorkspaceAnswer, WorkspaceSearch};
use futures_executor::block_on;

use super::*;
use ctx_search::VectorModel;

/// An embedder with three directions: fruit, beasts, and everything else.
struct Senses {
    fails: bool,
}

#[async_trait]
impl Embedder for Senses {
    fn name(&self) -> &str {
        "senses"
    }
    fn dimensions(&self) -> usize {
        3
    }
    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        if self.fails {
            return Err(ctx_core::Error::new(ErrorKind::Upstream, "the model is down"));
        }
        let of = |text: &String| {
            let has = |words: &[&str]| f32::from(words.iter().any(|word| text.contains(word)));
            vec![has(&["apple", "pear"]), has(&["zebra", "lion"]), 0.1]
        };
        Ok(texts.iter().map(of).collect())
    }
}

/// A timer without delays.
struct Hasty;

#[async_trait]
impl Timer for Hasty {
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    async fn sleep(&self, _: Duration) {}
}

fn model(fails: bool) -> VectorModel {
    VectorModel::new(Arc::new(Senses { fails }), Arc::new(Hasty))
}

fn embed(workspace: &Workspace) -> usize {
    block_on(workspace.embed(&model(false), |_| ControlFlow::Continue(()))).unwrap()
}

fn ask(room: &Room, fails: bool, question: &str) -> WorkspaceAnswer {
    let service = WorkspaceService::new(room.open(), Some(model(fails)));
    block_on(service.search(question, 1)).unwrap()
}

#[test]
fn vectors_find_meaning_and_words_are_used_if_the_model_fails() {
    let room = Room::with(&[("a.md", "a pear tree"), ("b.md", "a lion"), ("c.md", "an engine")]);
    let workspace = room.open();
    update(&workspace);
    assert_eq!(embed(&workspace), 3);
    assert_eq!(embed(&workspace), 0, "once");
    assert_eq!(ask(&room, false, "apple").snippets[0].path, "a.md");
    assert_eq!(ask(&room, false, "zebra").snippets[0].path, "b.md");
    let down = ask(&room, true, "engine");
    assert_eq!((down.snippets[0].path.as_str(), down.warnings.len()), ("c.md", 1));
    assert!(ask(&room, true, "apple").snippets.is_empty());
    // A changed file gets another vector; the others keep theirs.
    room.write("b.md", "an engine of a train");
    update(&workspace);
    assert_eq!(embed(&workspace), 1);
}

#[test]
fn a_turn_computes_some_vectors_and_other_chunks_are_found_by_words() {
    let room = Room::with(&[("0.md", "a lion"), ("z.md", "the word is xylophone")]);
    (0..40).for_each(|n| room.write(&format!("{n:02}.md"), format!("a pear number {n}")));
    let first = ask(&room, false, "apple");
    assert!(first.snippets[0].text.contains("pear"), "{first:?}");
    assert!(first.warnings.iter().any(|told| told.starts_with("10 chunks")), "{first:?}");
    assert_eq!(ask(&room, false, "xylophone").snippets[0].path, "z.md");
    assert!(ask(&room, false, "apple").warnings.is_empty(), "the second turn made the rest");
}

#[test]
fn vectors_without_a_weight_are_not_computed() {
    let room = Room::with(&[("a.md", "a pear tree")]);
    let settings = WorkspaceSettings { vector_weight: 0.0, ..WorkspaceSettings::default() };
    let workspace = Workspace::open(&room.index(), &room.folder(), settings).unwrap();
    let service = WorkspaceService::new(workspace, Some(model(true)));
    assert!(block_on(service.search("pear", 1)).unwrap().warnings.is_empty());
}
