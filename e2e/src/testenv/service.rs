//! What a Service is to those who call it: one address, and a replica behind it that answers.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Takes connections and passes each on to the next replica. Dropped, it takes no more.
#[derive(Debug)]
pub(crate) struct Service {
    replicas: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Service {
    /// Listens there, with no replica yet.
    pub(crate) async fn listen(address: &str) -> Result<Self> {
        let listener = TcpListener::bind(address).await;
        let listener = listener.with_context(|| format!("cannot listen on {address}"))?;
        let replicas = Arc::<Mutex<Vec<String>>>::default();
        let task = tokio::spawn(serve(listener, replicas.clone()));
        Ok(Self { replicas, task })
    }

    /// Passes connections on to these, from now on.
    pub(crate) fn lead_to(&self, addresses: Vec<String>) {
        *self.replicas.lock().unwrap_or_else(PoisonError::into_inner) = addresses;
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, replicas: Arc<Mutex<Vec<String>>>) {
    let mut turn = 0;
    // A listener that fails takes no connections, which the test will see.
    while let Ok((caller, _)) = listener.accept().await {
        let mut addresses = replicas.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let first = turn % addresses.len().max(1);
        addresses.rotate_left(first);
        turn += 1;
        // It ends when one of both does. What became of it is theirs to say.
        tokio::spawn(pass(caller, addresses));
    }
}

/// To the first that takes it.
async fn pass(mut caller: TcpStream, addresses: Vec<String>) -> io::Result<()> {
    for address in addresses {
        if let Ok(mut replica) = TcpStream::connect(&address).await {
            tokio::io::copy_bidirectional(&mut caller, &mut replica).await?;
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Answers each connection with its name.
    async fn replica(name: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            loop {
                let (mut caller, _) = listener.accept().await.unwrap();
                caller.write_all(name.as_bytes()).await.unwrap();
            }
        });
        address
    }

    async fn answer(address: &str) -> String {
        let (mut answer, mut service) = (String::new(), TcpStream::connect(address).await.unwrap());
        service.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn each_replica_has_its_turn_and_one_that_is_gone_is_passed_over() {
        let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let port = crate::testenv::ports::Port::take().unwrap();
        let service = Service::listen(&port.address()).await.unwrap();
        assert_eq!(answer(&port.address()).await, "");
        service.lead_to(vec![replica("a").await, gone.to_string(), replica("b").await]);
        let mut answers = Vec::new();
        for _ in 0..3 {
            answers.push(answer(&port.address()).await);
        }
        answers.sort();
        assert_eq!(answers, ["a", "b", "b"]);
    }
}
