//! Kafka's error codes: what they mean, and what to do.

/// Codes that are treated apart.
pub(super) mod code {
    pub(in super::super) const UNKNOWN_TOPIC: i16 = 3;
    pub(in super::super) const TOO_LARGE: i16 = 10;
    pub(in super::super) const LIST_TOO_LARGE: i16 = 18;
    pub(in super::super) const OUT_OF_ORDER: i16 = 45;
    pub(in super::super) const DUPLICATE: i16 = 46;
    pub(in super::super) const BAD_EPOCH: i16 = 47;
    pub(in super::super) const UNKNOWN_PRODUCER: i16 = 59;
    pub(in super::super) const INVALID_RECORD: i16 = 87;
}

/// An error in words, with its code.
pub(super) fn text(error: i16) -> String {
    let meaning = match error {
        1 => "offset out of range",
        2 => "the batch arrived damaged",
        3 => "no such topic or partition; create it",
        5 => "the partition has no leader; is its broker running?",
        6 => "this broker no longer leads the partition",
        7 => "the brokers did not answer in time",
        10 => "the batch is larger than the topic's max.message.bytes; raise it, or lower batch_bytes",
        13 => "the broker lost a connection",
        14 => "the coordinator is loading; this passes",
        15 => "the coordinator is not available; this passes",
        18 => "the batch is larger than a segment of the topic; raise segment.bytes, or lower batch_bytes",
        19 | 20 => "fewer replicas in sync than min.insync.replicas; start the other brokers",
        29 => "this user may not write to the topic; give it the right Write",
        31 => "this user may not write without a sequence; give it IdempotentWrite",
        32 => {
            "the broker refuses the time of the batch: this host's clock and the broker's differ; set them, or the \
             topic's message.timestamp.before.max.ms and .after.max.ms"
        }
        45 => "out-of-order sequence",
        47 => "invalid producer epoch",
        56 => "the broker cannot write to its disk: it is full or has failed",
        58 => "authentication failed; check user and secret_file",
        59 => "unknown producer id",
        76 => "the topic does not take zstd; set compression = none",
        87 => "the broker refuses the record",
        89 => "the broker slows this host down by a quota; this passes",
        _ => "see the list of errors in Kafka's protocol guide",
    };

    format!("{meaning} (error {error})")
}
