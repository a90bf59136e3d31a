//! A host with a model of its own: `cargo run -p ctx-runtime --example host`, then type.

#![allow(clippy::print_stdout)] // It is a program that answers.

use std::sync::Arc;

use async_trait::async_trait;
use ctx_core::{
    ChatModel, ChatRequest, ChatStop, Deltas, Message, ModelCard, NoTools, Reply, Result, Role,
    Tokens,
};
use ctx_engine_registry::Config;
use ctx_runtime::{Deaf, Runtime};
use ctx_session::{key::SessionKey, paths::Home};

struct Parrot(ModelCard);

#[async_trait]
impl ChatModel for Parrot {
    fn card(&self) -> &ModelCard {
        &self.0
    }

    async fn answer(&self, request: ChatRequest, _: Deltas<'_>) -> Result<Reply> {
        let heard = request.messages.last().map(|message| message.plain_text()).unwrap_or_default();
        let message = Message::text(Role::Assistant, format!("You said: {heard}"));
        Ok(Reply { message, stop: ChatStop::End })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let card = ModelCard::new("my/parrot", Tokens(32_000));
    let runtime = Runtime::builder(Home::from_env()?, Config::default())
        .model(Arc::new(Parrot(card)))
        .build()?;
    let key: SessionKey = "agent:parrot:main".parse()?;
    for line in std::io::stdin().lines().map_while(|line| line.ok()) {
        let turn = runtime.turn(&key, line, &NoTools, &mut Deaf).await?;
        println!("{}", turn.answer.unwrap_or_default());
    }
    runtime.close(&key).await
}
