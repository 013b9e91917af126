// Package limittest holds what every limit.Store must do: a suite of cases (Run),
// a random history in which a store and a plain model must answer alike step by
// step (History), and a Redis for tests (StartRedis).
//
// The names C073 and so on are the cases that people were bitten by elsewhere.
package limittest
