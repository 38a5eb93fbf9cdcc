#include "front/client_registry.h"

#include <utility>

namespace kvferry::front {

void ClientCard::post(const std::shared_ptr<ClientCard>& card,
                      std::function<void(RespClient&)> work) {
  card->owner_->post([card, work = std::move(work)] {
    if (card->client_ != nullptr) {
      work(*card->client_);
    }
  });
}

std::shared_ptr<ClientCard> ClientRegistry::enter(std::shared_ptr<net::Mailbox> owner,
                                                  std::int64_t now_ms) {
  const std::lock_guard lock(mutex_);
  auto card = std::make_shared<ClientCard>(++last_id_, std::move(owner), now_ms);
  cards_.emplace(card->id(), card);
  return card;
}

void ClientRegistry::leave(const ClientCard& card) {
  const std::lock_guard lock(mutex_);
  cards_.erase(card.id());
}

std::vector<std::shared_ptr<ClientCard>> ClientRegistry::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<ClientCard>> cards;
  cards.reserve(cards_.size());
  for (const auto& [id, card] : cards_) {
    cards.push_back(card);
  }
  return cards;
}

std::shared_ptr<ClientCard> ClientRegistry::find(std::uint64_t id) const {
  const std::lock_guard lock(mutex_);
  const auto found = cards_.find(id);
  return found == cards_.end() ? nullptr : found->second;
}

}  // namespace kvferry::front
