// SPDX-License-Identifier: Apache-2.0
import Hummingbird
import TokenServerCore

/// The routes for approvals and denials.
struct AnswerRoutes: Sendable {
  let gate: DeviceGate
  let answers: AnswerService

  func add(to router: Router<ServerContext>) {
    router.post("/device/v1/requests/:tid/answers") { request, context in
      try await answers.answer(ArrivedAnswer(request, context, gate)).response()
    }
    router.post("/device/v1/requests/:tid/denials") { request, context in
      try await answers.deny(ArrivedAnswer(request, context, gate)).response()
    }
  }
}
